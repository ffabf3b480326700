#pragma once
// Backend over an ExpertLayer: rows, slot ids and weights go from the host's memory through one
// pinned block to the device, results come back through another; rows that the device's copies
// reach where they lie (registered memory, or the device's own) go straight. Entries, which the
// engine has grouped for CPU backends, become the arrays that device kernels group by themselves.
// The rows of a call are rounded up to a power of two: launches of one bucket are recorded once and
// replayed for any number of live rows. Calls beyond the capacity are cut into chunks; no row's
// result depends on another row, so nobody can tell.
//
// It allocates when it is made, and on the layer's path only where the queue records a bucket that
// it sees for the second time.
//
// Thread: engine (run); const queries and pack_page(): any.

#include <memory>

#include "kernels/backend.hpp"
#include "kernels/cuda/expert_layer.hpp"
#include "workers/device/call_layout.hpp"
#include "workers/device/device_bill.hpp"
#include "workers/device/device_queue.hpp"

namespace moetier::workers {

struct device_capacity {
  std::uint32_t rows_max = 0;  // of one call; more than k_chunk_rows_max run in chunks
  std::uint32_t k_max = 0;
  std::uint32_t slots_max = 0;  // pages of one layer, shared ones included

  bool operator==(const device_capacity&) const = default;
};

class device_backend final : public kernels::Backend {
 public:
  static constexpr std::uint32_t k_chunk_rows_max = 4096;

  // What it allocates on the device; pure.
  static device_bill bill(const kernels::cuda::ExpertLayer& layer, const device_capacity& capacity);

  // reason::memory_insufficient, device_lost. Requires: no member of capacity is 0.
  static expected<std::unique_ptr<device_backend>> create(
      std::unique_ptr<kernels::cuda::ExpertLayer> layer, kernels::operand_form operands,
      const device_capacity& capacity, std::unique_ptr<device_queue> queue);
  ~device_backend() override;
  device_backend(const device_backend&) = delete;
  device_backend& operator=(const device_backend&) = delete;

  std::string_view identity() const noexcept override { return layer_->identity(); }
  std::string_view layout_id() const noexcept override { return layer_->layout_id(); }
  bool row_invariant() const noexcept override { return layer_->row_invariant(); }
  kernels::operand_form operands() const noexcept override { return operands_; }
  const kernels::expert_shape& shape() const noexcept override { return layer_->shape(); }
  std::size_t page_bytes() const noexcept override { return layer_->page_bytes(); }
  void pack_page(const kernels::expert_tensors& tensors, std::span<std::byte> page) const override {
    layer_->pack_page(tensors, page);
  }
  // None of the host's: the workspace is the device's and lies here.
  std::size_t workspace_bytes(std::uint32_t, std::uint32_t) const noexcept override { return 0; }
  kernels::compute_status run(const kernels::expert_call& call) override;

  // A page's bytes in device memory, for the self-test. It frees them with the result.
  expected<device_bytes> place_page(std::span<const std::byte> page);

 private:
  struct sizes {
    std::uint32_t rows_cap = 0;  // of one chunk
    std::uint32_t out_rows = 0;  // of one chunk: rows, or positions in exact mode
    std::size_t in = 0;          // bytes
    std::size_t out = 0;
    std::size_t workspace = 0;
  };
  struct memory {
    device_bytes in, out, workspace;     // the device's
    device_bytes pinned_in, pinned_out;  // the host's
  };
  struct chunk;

  static sizes sizes_of(const kernels::cuda::ExpertLayer& layer, const device_capacity& capacity);
  device_backend(std::unique_ptr<kernels::cuda::ExpertLayer> layer, kernels::operand_form operands,
                 const device_capacity& capacity, std::unique_ptr<device_queue> queue,
                 memory blocks);

  std::uint32_t chunk_rows(const kernels::expert_call& call) const noexcept;
  bool takes_straight(const kernels::expert_call& call) const noexcept;
  bool gives_straight(const kernels::expert_call& call) const noexcept;
  std::size_t row_bytes() const noexcept {
    return std::size_t{shape().hidden_size} * sizeof(float);
  }
  // In this order: the pinned block is written, travels, is computed with, results come back.
  void write_in(const chunk& c);
  queue_status send_rows(const chunk& c);
  queue_status launch(const chunk& c);
  queue_status fetch_rows(const chunk& c);
  kernels::compute_status compute(const chunk& c);
  void read_out(const chunk& c) const;

  std::unique_ptr<kernels::cuda::ExpertLayer> layer_;
  kernels::operand_form operands_;
  device_capacity capacity_;
  sizes sizes_;
  std::unique_ptr<device_queue> queue_;  // outlives the memory below
  memory memory_;
};

}  // namespace moetier::workers
