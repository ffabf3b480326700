// What a build without CUDA answers.
#include "workers/device/worker_device.hpp"

namespace moetier::workers {
namespace {

unexpected_error no_cuda() {
  return fail(reason::config_invalid, "worker.device", "cuda",
              "auto or cpu, as this build has no CUDA; configure it where nvcc is found, with "
              "-DMOETIER_CUDA=ON");
}

}  // namespace

expected<std::unique_ptr<worker_device>> open_device(const device_options&) { return no_cuda(); }
expected<std::uint32_t> count_devices() { return no_cuda(); }

}  // namespace moetier::workers
