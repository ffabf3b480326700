#pragma once
// (interface) The CUDA device that a worker pins: what it is, its queues, and the layers that this
// build computes on it. A build without CUDA has the same functions, which say how to build one
// that has it. Thread: owner for opening; make_queue: any.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "kernels/cuda/expert_layer.hpp"
#include "schemas/base/time.hpp"
#include "transport/communication.hpp"
#include "workers/device/device_facts.hpp"
#include "workers/device/device_queue.hpp"

namespace moetier::workers {

// Told once, by whichever queue fails first, on its owner's thread.
using device_lost_sink = std::function<void(const error&)>;

struct device_options {
  std::uint32_t ordinal = 0;
  duration_ns spin = 50 * k_microsecond;  // of wait(), before it sleeps
  device_lost_sink on_lost{};
};

struct device_layer {
  std::unique_ptr<kernels::cuda::ExpertLayer> layer;
  kernels::operand_form operands = kernels::operand_form::f32;
};

inline constexpr std::size_t k_row_memory_max_bytes = std::size_t{256} << 20;

class worker_device {
 public:
  virtual ~worker_device() = default;

  virtual const device_facts& facts() const noexcept = 0;
  // What is free now, for whoever comes first.
  virtual std::size_t free_bytes() const = 0;
  virtual expected<std::unique_ptr<device_queue>> make_queue() = 0;
  // Lets copies go to and from the rows of a worker half without a stop in pinned memory, as far as
  // the device takes them: blocks above k_row_memory_max_bytes stay as they are, since registering
  // makes all their pages real, on the engine's thread, while other sources wait.
  virtual std::shared_ptr<transport::RowMemoryWatch> row_memory() = 0;
  // reason::backend_unresolved: this build has no such layer, or it does not take the shape.
  virtual expected<device_layer> make_layer(std::string_view identity,
                                            const kernels::expert_shape& shape) = 0;
};

// reason::config_invalid, for the setting worker.device: this build has no CUDA, the machine has no
// device, or none of this number. Nothing is allocated on the device but its context.
expected<std::unique_ptr<worker_device>> open_device(const device_options& options);
// How many there are, at least one; the same errors, which say that the setting was `given`.
expected<std::uint32_t> count_devices(std::string_view given = "cuda");

}  // namespace moetier::workers
