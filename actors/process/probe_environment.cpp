#include "actors/process/probe_environment.hpp"

#include <algorithm>
#include <array>
#include <cfenv>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernels/backend.hpp"
#include "kernels/cpu_capabilities.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/resolution/numerics.hpp"
#include "transport/communication.hpp"

namespace moetier {
namespace {

using resolution::environment;

std::optional<std::uint64_t> memory_of_machine() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long bytes = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || bytes <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes);
}

std::optional<std::string> architecture() {
  utsname names{};
  if (::uname(&names) != 0) return std::nullopt;
  return printable(names.machine);
}

// The first "model name" of /proc/cpuinfo.
std::optional<std::string> processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view k_name = "model name";
    const std::size_t colon = line.find(": ");
    if (line.starts_with(k_name) && colon != line.npos)
      return printable(std::string_view(line).substr(colon + 2));
  }
  return std::nullopt;
}

// What the processor was told about rounding and tiny numbers, and how the code was compiled.
std::string numeric_flags() {
  volatile float tiny = std::numeric_limits<float>::min();
  const volatile float half = tiny * 0.5F;
  return fmt::format("contract=off,rounding={},denormals={}",
                     std::fegetround() == FE_TONEAREST ? "nearest" : "other",
                     half != 0.0F ? "kept" : "flushed");
}

struct built_kernel {
  const kernels::cpu_capabilities& can;
  std::string_view layout;  // how its layout ids begin
};

constexpr std::array k_built{
    built_kernel{kernels::k_cpu_avx2_capabilities, "panels16"},
    built_kernel{kernels::k_cpu_ref_capabilities, "canonical"},
    built_kernel{kernels::k_reference_capabilities, "canonical"},
};

// "cpu.avx2" of "moetier.cpu.avx2.".
std::string kernel_of(std::string_view identity_prefix) {
  const std::size_t dot = identity_prefix.find('.');
  return std::string(identity_prefix.substr(dot + 1, identity_prefix.size() - dot - 2));
}

void fill_kernels(environment& e, const build_info& build, const workers::device_facts* device) {
  std::string set = fmt::format("{} {}\n", build.compiler, build.build_type);
  e.kernels.emplace();
  const auto add = [&](const std::string& name, std::string_view layout) {
    e.kernels->push_back(name);
    e.layouts[name] = layout;
    set += fmt::format("{} {}\n", name, layout);
  };
  for (const built_kernel& k : k_built) add(kernel_of(k.can.identity_prefix), k.layout);
  if (device != nullptr) {
    for (const auto& [name, layout] : device->kernels) add(name, layout);
  }
  std::sort(e.kernels->begin(), e.kernels->end());
  e.numerics_routing = resolution::k_numerics_routing;
  e.numerics_quantiser = resolution::k_numerics_quantiser;
  e.numerics_combine = resolution::k_numerics_combine;
  set += fmt::format("{} {} {}\n", *e.numerics_routing, *e.numerics_quantiser, *e.numerics_combine);
  e.kernel_set_hash = fmt::format(
      "{:016x}", first_64_bits(sha256(std::as_bytes(std::span(set.data(), set.size())))));
}

std::string absent_if_none(std::string_view version) {
  return version == "none" ? std::string() : std::string(version);
}

}  // namespace

environment probe_environment(const probe_inputs& inputs) {
  const config::settings& s = inputs.settings;
  const kernels::cpu_features cpu = kernels::detect_cpu_features();
  environment e;
  const auto limited = [&s](std::optional<std::uint64_t> there) {
    return s.worker.memory != 0 ? std::optional<std::uint64_t>(s.worker.memory) : there;
  };
  if (inputs.device == nullptr) {
    e.device = resolution::device_kind::cpu;
    e.architecture = architecture();
    e.device_name = processor_name();
    e.host_memory_bytes = limited(memory_of_machine());
    e.memory_bytes = e.host_memory_bytes;
    e.driver = "";
  } else {
    e.device = resolution::device_kind::cuda;
    e.architecture = inputs.device->architecture;
    e.device_name = printable(inputs.device->name);
    e.host_memory_bytes = memory_of_machine();
    e.memory_bytes = limited(inputs.device->memory_bytes);
    e.driver = printable(inputs.device->driver);
  }
  e.cuda = absent_if_none(inputs.build.cuda);
  e.libraries = {{"caf", std::string(inputs.build.caf)},
                 {"capnp", std::string(inputs.build.capnp)},
                 {"compiler", std::string(inputs.build.compiler)},
                 {"ucx", std::string(inputs.build.ucx)}};
  e.cpu_avx2 = cpu.avx2;
  e.cpu_fma = cpu.fma;
  e.cpu_f16c = cpu.f16c;
  e.cpu_avx512f = cpu.avx512f;
  e.carriers = inputs.carriers;
  e.settings = {{"backend.force", s.backend.force},
                {"moe.return_mode", s.moe.return_mode},
                {"transport.allow_tcp", s.transport.allow_tcp},
                {"transport.carrier", s.transport.carrier},
                {"transport.listen", s.transport.listen},
                {"worker.device", s.worker.device},
                {"worker.memory", std::to_string(s.worker.memory)},
                {"worker.threads", std::to_string(s.worker.threads)}};
  e.build_id = fmt::format("{} ({})", inputs.build.version, inputs.build.commit);
  e.numeric_flags = numeric_flags();
  fill_kernels(e, inputs.build, inputs.device);
  return e;
}

std::vector<std::string> probe_carriers(const config::settings& s) {
  std::vector<std::string> names;
  for (const char* module : {"in_process", "shared_memory", "ucx"}) {
    const auto carrier =
        transport::open_carrier(module, {.listen = s.transport.listen,
                                         .checksum_payload = s.transport.checksum == "on",
                                         .allow_tcp = s.transport.allow_tcp != "off"});
    if (carrier) names.emplace_back((*carrier)->name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace moetier
