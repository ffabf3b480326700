#include "actors/doctor/gpu.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace moetier::doctor {
namespace {

std::string driver_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string list_of(const gpu_facts& f) {
  std::string list;
  for (std::size_t i = 0; i < f.devices.size(); ++i) {
    const gpu_device& g = f.devices[i];
    list += fmt::format("{}{}: {} (sm_{}{}, {})", i == 0 ? "" : ", ", i, g.name, g.major, g.minor,
                        rough_size(g.memory_bytes));
  }
  return list;
}

// Why there is no device to speak of, or "".
std::string absence_of(const gpu_facts& f) {
  if (!f.library) return "the driver's library, libcuda.so.1, does not load";
  if (f.init_error != 0) return fmt::format("the driver does not start (error {})", f.init_error);
  if (f.devices.empty()) return "the driver sees no device";
  return {};
}

finding judge_devices(const gpu_facts& f, const gpu_wish& wish) {
  const std::string absence = absence_of(f);
  if (!wish.wanted) {
    if (!absence.empty()) return skip("gpu", absence + "; worker.device asks for none");
    return pass("gpu", list_of(f) + "; worker.device asks for none");
  }
  if (!wish.built) {
    return failure("gpu", "worker.device asks for CUDA, and this build has none",
                   "configure with nvcc of a CUDA 13 toolkit in the PATH, or worker.device=cpu");
  }
  if (!absence.empty()) {
    return failure("gpu", absence,
                   "install NVIDIA's driver (in a container: let its runtime pass it in), or "
                   "worker.device=cpu");
  }
  if (wish.ordinal >= 0 && static_cast<std::size_t>(wish.ordinal) >= f.devices.size()) {
    return failure("gpu",
                   fmt::format("worker.device asks for number {}; there are {}", wish.ordinal,
                               f.devices.size()),
                   fmt::format("worker.device=cuda:0 to cuda:{}, and look at "
                               "CUDA_VISIBLE_DEVICES",
                               f.devices.size() - 1));
  }
  const bool fast = std::all_of(f.devices.begin(), f.devices.end(),
                                [](const gpu_device& g) { return g.major == 9 && g.minor == 0; });
  if (!fast) {
    return warn("gpu", list_of(f),
                "the fast kernels are for sm_90 (H100, H200); on other devices "
                "cuda_ref computes and the tier counts as degraded");
  }
  return pass("gpu", list_of(f));
}

finding judge_driver(const gpu_facts& f, const gpu_wish& wish) {
  if (!absence_of(f).empty()) return skip("gpu_driver", absence_of(f));
  const std::string seen = fmt::format("driver for CUDA {}", driver_text(f.driver));
  if (wish.built && f.driver / 1000 < wish.toolkit_major) {
    const std::string text = fmt::format("{}; this build needs {}", seen, wish.toolkit_major);
    const std::string remedy = "install a newer driver";
    return wish.wanted ? failure("gpu_driver", text, remedy) : warn("gpu_driver", text, remedy);
  }
  return pass("gpu_driver", seen);
}

finding judge_peers(const gpu_facts& f) {
  if (f.devices.size() < 2) return skip("gpu_peers", "fewer than two GPUs");
  std::string apart;
  for (std::size_t a = 0; a < f.devices.size(); ++a) {
    for (std::size_t b = 0; b < f.devices[a].reaches.size(); ++b) {
      if (!f.devices[a].reaches[b]) {
        apart += fmt::format("{}{} to {}", apart.empty() ? "" : ", ", a, b);
      }
    }
  }
  if (apart.empty()) {
    return pass("gpu_peers", fmt::format("{} GPUs reach each other", f.devices.size()));
  }
  return warn("gpu_peers", "no peer access: " + apart,
              "nvidia-smi topo -p2p r; switch ACS off in the firmware, or let the container have "
              "all GPUs: rows and weights pass through the host else");
}

}  // namespace

findings judge_gpus(const gpu_facts& f, const gpu_wish& wish) {
  return {judge_devices(f, wish), judge_driver(f, wish), judge_peers(f)};
}

}  // namespace moetier::doctor
