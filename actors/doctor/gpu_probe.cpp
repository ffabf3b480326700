#include <algorithm>
#include <array>
#include <cctype>

#include <dlfcn.h>

#include "actors/doctor/control_groups.hpp"
#include "actors/doctor/gpu.hpp"

namespace moetier::doctor {
namespace {

// The driver's C interface, by hand: its header belongs to a toolkit that need not be here.
struct driver_calls {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*memory)(std::size_t*, int) = nullptr;
  int (*pci)(char*, int, int) = nullptr;
  int (*reaches)(int*, int, int) = nullptr;
};

constexpr int k_capability_major = 75;
constexpr int k_capability_minor = 76;

template <class Call>
bool find(void* library, const char* symbol, Call& into) {
  into = reinterpret_cast<Call>(::dlsym(library, symbol));
  return into != nullptr;
}

bool find_all(void* library, driver_calls& d) {
  return find(library, "cuInit", d.init) && find(library, "cuDriverGetVersion", d.version) &&
         find(library, "cuDeviceGetCount", d.count) && find(library, "cuDeviceGet", d.device) &&
         find(library, "cuDeviceGetName", d.name) &&
         find(library, "cuDeviceGetAttribute", d.attribute) &&
         find(library, "cuDeviceTotalMem_v2", d.memory) &&
         find(library, "cuDeviceGetPCIBusId", d.pci) &&
         find(library, "cuDeviceCanAccessPeer", d.reaches);
}

gpu_device read_device(const driver_calls& d, int device, int count,
                       const std::filesystem::path& root) {
  gpu_device g;
  std::array<char, 128> text{};
  if (d.name(text.data(), static_cast<int>(text.size()) - 1, device) == 0) g.name = text.data();
  d.attribute(&g.major, k_capability_major, device);
  d.attribute(&g.minor, k_capability_minor, device);
  std::size_t bytes = 0;
  if (d.memory(&bytes, device) == 0) g.memory_bytes = bytes;
  text.fill('\0');
  if (d.pci(text.data(), static_cast<int>(text.size()) - 1, device) == 0) g.pci = text.data();
  std::transform(g.pci.begin(), g.pci.end(), g.pci.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!g.pci.empty()) {
    const auto node = number_in(root / "sys/bus/pci/devices" / g.pci / "numa_node");
    if (node && *node >= 0) g.numa_node = static_cast<int>(*node);
  }
  for (int other = 0; other < count; ++other) {
    int peer = 0;
    int yes = 0;
    const bool asked = d.device(&peer, other) == 0 && d.reaches(&yes, device, peer) == 0;
    g.reaches.push_back(peer == device || (asked && yes != 0));
  }
  return g;
}

}  // namespace

gpu_facts probe_gpus(const std::filesystem::path& root, const char* library) {
  gpu_facts f;
  // Never closed: the driver keeps threads of its own.
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  driver_calls d;
  f.library = loaded != nullptr && find_all(loaded, d);
  if (!f.library) return f;
  f.init_error = d.init(0);
  if (f.init_error != 0) return f;
  d.version(&f.driver);
  int count = 0;
  if (d.count(&count) != 0) return f;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (d.device(&device, i) == 0) f.devices.push_back(read_device(d, device, count, root));
  }
  return f;
}

}  // namespace moetier::doctor
