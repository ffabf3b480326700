#pragma once
// A worker_device that is none: its memory is the host's, its layers are CPU backends, and its
// queues do nothing before they are waited for. Thread: owner.

#include "kernels/candidates/backend_candidate.hpp"
#include "tests/workers/device/host_layer.hpp"
#include "workers/device/worker_device.hpp"

namespace moetier::roles {

class host_device final : public workers::worker_device {
 public:
  const workers::device_facts& facts() const noexcept override { return facts_; }
  std::size_t free_bytes() const override { return free; }
  expected<std::unique_ptr<workers::device_queue>> make_queue() override {
    auto queue = std::make_unique<workers::late_queue>();
    queues.push_back(queue.get());
    return queue;
  }
  std::shared_ptr<transport::RowMemoryWatch> row_memory() override { return nullptr; }
  expected<workers::device_layer> make_layer(std::string_view identity,
                                             const kernels::expert_shape& shape) override {
    if (refuses) return fail(reason::backend_unresolved, identity);
    auto by = kernels::make_cpu_backend("cpu_ref", shape, {}, {});
    if (!by) return unexpected_error(by.error());
    return workers::device_layer{std::make_unique<workers::host_layer>(std::move(*by)), operands};
  }

  std::size_t free = 64u << 20;
  bool refuses = false;
  kernels::operand_form operands = kernels::operand_form::f32;
  std::vector<workers::late_queue*> queues;  // those that were made, in order

 private:
  workers::device_facts facts_{.name = "none", .architecture = "sm_90"};
};

}  // namespace moetier::roles
