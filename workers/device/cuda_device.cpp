// worker_device over CUDA: probing, and the making of queues and layers.
#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "kernels/cuda/built_layers.hpp"
#include "kernels/cuda/make_expert_layer.hpp"
#include "workers/device/cuda_queue.hpp"
#include "workers/device/lost_once.hpp"
#include "workers/device/worker_device.hpp"

namespace moetier::workers {
namespace {

unexpected_error refuse(std::string_view given, const std::string& allowed) {
  return fail(reason::config_invalid, "worker.device", given, allowed);
}

expected<int> device_count(std::string_view given) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess)
    return refuse(given, fmt::format("auto or cpu, as CUDA finds no device here: {} ({})",
                                      cudaGetErrorName(code), cudaGetErrorString(code)));
  if (count == 0) return refuse(given, "auto or cpu, as this machine has no CUDA device");
  return count;
}

// As the kernel's module tells it; where it is not to be seen, the newest CUDA that it runs.
std::string driver_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  if (std::getline(file, version) && !version.empty()) return version;
  int newest = 0;
  if (cudaDriverGetVersion(&newest) != cudaSuccess) return {};
  return fmt::format("CUDA {}.{}", newest / 1000, newest % 1000 / 10);
}

// Registers blocks with CUDA; what it refuses is copied by way of pinned memory.
class registered_rows final : public transport::RowMemoryWatch {
 public:
  explicit registered_rows(int ordinal) : ordinal_(ordinal) {}

  void made(std::span<std::byte> block) noexcept override {
    if (block.size() > k_row_memory_max_bytes || cudaSetDevice(ordinal_) != cudaSuccess) return;
    if (cudaHostRegister(block.data(), block.size(), cudaHostRegisterPortable) != cudaSuccess) {
      (void)cudaGetLastError();
      return;
    }
    const std::lock_guard lock(mutex_);
    registered_.insert(block.data());
  }

  void going(std::span<std::byte> block) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      if (registered_.erase(block.data()) == 0) return;
    }
    if (cudaSetDevice(ordinal_) != cudaSuccess || cudaHostUnregister(block.data()) != cudaSuccess)
      (void)cudaGetLastError();  // of a dead context: it goes with the process
  }

 private:
  int ordinal_;
  std::mutex mutex_;
  std::set<std::byte*> registered_;
};

class cuda_device final : public worker_device {
 public:
  cuda_device(device_facts facts, const device_options& options)
      : facts_(std::move(facts)),
        spin_(options.spin),
        lost_(std::make_shared<lost_once>(options.on_lost)) {}

  const device_facts& facts() const noexcept override { return facts_; }

  std::size_t free_bytes() const override {
    std::size_t free = 0;
    std::size_t all = 0;
    if (cudaSetDevice(ordinal()) != cudaSuccess || cudaMemGetInfo(&free, &all) != cudaSuccess)
      return 0;
    return free;
  }

  expected<std::unique_ptr<device_queue>> make_queue() override {
    return make_cuda_queue(facts_.ordinal, spin_, lost_);
  }

  std::shared_ptr<transport::RowMemoryWatch> row_memory() override {
    return std::make_shared<registered_rows>(ordinal());
  }

  expected<device_layer> make_layer(std::string_view identity,
                                    const kernels::expert_shape& shape) override {
    if (cudaSetDevice(ordinal()) != cudaSuccess)
      return fail(reason::device_lost, "it cannot be chosen");
    auto made = kernels::cuda::make_expert_layer(
        identity, shape,
        {.multiprocessors = facts_.multiprocessors, .shared_bytes_max = facts_.shared_bytes_max});
    if (!made) return unexpected_error(std::move(made.error()));
    return device_layer{std::move(*made), kernels::cuda::operands_of(identity)};
  }

 private:
  int ordinal() const noexcept { return static_cast<int>(facts_.ordinal); }

  device_facts facts_;
  duration_ns spin_;
  std::shared_ptr<lost_once> lost_;
};

}  // namespace

expected<std::uint32_t> count_devices(std::string_view given) {
  const auto count = device_count(given);
  if (!count) return unexpected_error(count.error());
  return static_cast<std::uint32_t>(*count);
}

expected<std::unique_ptr<worker_device>> open_device(const device_options& options) {
  const std::string name = fmt::format("cuda:{}", options.ordinal);
  const auto count = count_devices(name);
  if (!count) return unexpected_error(count.error());
  if (options.ordinal >= *count)
    return refuse(name, *count == 1 ? "cuda:0, as this machine has one device"
                                    : fmt::format("cuda:0 to cuda:{}", *count - 1));
  const int ordinal = static_cast<int>(options.ordinal);
  cudaDeviceProp seen{};
  cudaError_t code = cudaGetDeviceProperties(&seen, ordinal);
  if (code == cudaSuccess) code = cudaSetDevice(ordinal);
  if (code == cudaSuccess) code = cudaFree(nullptr);  // makes the context
  if (code != cudaSuccess)
    return refuse(name, fmt::format("a device that can be used; this one says {} ({})",
                                    cudaGetErrorName(code), cudaGetErrorString(code)));
  device_facts facts{.ordinal = options.ordinal,
                     .name = seen.name,
                     .architecture = fmt::format("sm_{}{}", seen.major, seen.minor),
                     .memory_bytes = seen.totalGlobalMem,
                     .driver = driver_version(),
                     .multiprocessors = static_cast<std::uint32_t>(seen.multiProcessorCount),
                     .shared_bytes_max = static_cast<std::uint32_t>(seen.sharedMemPerBlockOptin),
                     .kernels = {}};
  for (const kernels::cuda::built_layer& layer : kernels::cuda::k_built_layers)
    facts.kernels.emplace_back(layer.kernel, layer.layout);
  return std::unique_ptr<worker_device>(std::make_unique<cuda_device>(std::move(facts), options));
}

}  // namespace moetier::workers
