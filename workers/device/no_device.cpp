// What a build without CUDA answers.
#include <string_view>

#include <fmt/core.h>

#include "workers/device/worker_device.hpp"

namespace moetier::workers {
namespace {

unexpected_error no_cuda(std::string_view given) {
  return fail(reason::config_invalid, "worker.device", given,
              "auto or cpu, as this build has no CUDA; configure it where nvcc is found, with "
              "-DMOETIER_CUDA=ON");
}

}  // namespace

expected<std::unique_ptr<worker_device>> open_device(const device_options& o) {
  return no_cuda(fmt::format("cuda:{}", o.ordinal));
}
expected<std::uint32_t> count_devices(std::string_view given) { return no_cuda(given); }

}  // namespace moetier::workers
