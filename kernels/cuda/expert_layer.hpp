#pragma once
// (interface) The experts of one layer on one CUDA device, enqueued on a stream: grouping, then row
// quantiser or gather, FC1, activation, FC2 and the weighted sum. Pure compute, as Backend is, but
// over device memory and without waiting: it allocates nothing, synchronises nothing, reads no
// device data on the host, and a captured graph of it serves any number of live rows. The worker's
// device shell (workers/device) puts it behind kernels::Backend.
//
// Pages are device memory; their bytes are packed on the host and copied as they are. Bits of
// y(row, slot) depend on no other row where row_invariant().
//
// Thread: engine (one stream, one workspace); const queries and pack_page(): any.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"
#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

// One call. All pointers are device memory, rows and outputs at multiples of 16 bytes. Rows at or
// beyond *rows_live may hold anything and their outputs are never written.
struct layer_call {
  const std::byte* rows = nullptr;  // [rows_cap][hidden]
  std::size_t row_pitch_bytes = 0;
  row_type row_as = row_type::bf16;
  const std::uint32_t* rows_live = nullptr;  // 0..rows_cap
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 0;
  const std::int32_t* slot_ids = nullptr;   // [rows_cap][k_in]: 0..slots-1, or -1
  const float* weights = nullptr;           // [rows_cap][k_in]
  const std::byte* const* pages = nullptr;  // [slots]; nullptr = the slot holds no expert
  std::uint32_t slots = 0;                  // 1..1024
  // partial: out[r] = sum of w * y over r's entries in ascending (slot, position), f32, rounded
  // once; a live row with only -1 is +0. exact: out[r * k_in + j] = y, unweighted.
  return_mode mode = return_mode::partial;
  std::byte* out = nullptr;
  std::size_t out_pitch_bytes = 0;
  out_type out_as = out_type::bf16;
  std::uint32_t rows_per_slot = 0;   // expected; chooses the variant, never the result; 0 = unknown
  std::span<std::byte> workspace{};  // device; >= workspace_bytes(), 256-byte aligned, initialised
  std::uint32_t* status = nullptr;   // one device word, 0 before: see device_failure
};

// What workspaces and plans are sized for.
struct layer_capacity {
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 0;
  std::uint32_t slots = 0;

  bool operator==(const layer_capacity&) const = default;
};

class ExpertLayer {
 public:
  virtual ~ExpertLayer() = default;

  virtual std::string_view identity() const noexcept = 0;   // "moetier.cuda.sm90_fp8.fp8_block"
  virtual std::string_view layout_id() const noexcept = 0;  // equal ids mean equal page bytes
  virtual const expert_shape& shape() const noexcept = 0;
  virtual bool row_invariant() const noexcept = 0;
  virtual std::size_t page_bytes() const noexcept = 0;
  // As Backend::pack_page(), on the host.
  virtual void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const = 0;

  // Pure and monotone in every member; enough for both modes and all types.
  virtual std::size_t workspace_bytes(const layer_capacity& capacity) const noexcept = 0;
  // Enqueues what a fresh workspace needs once.
  virtual launch_status init_workspace(std::span<std::byte> workspace, void* stream) const = 0;

  // Tiles of the batch, into the workspace. A bad slot id sets *status.
  virtual launch_status group(const layer_call& call, void* stream) const = 0;
  // (optional) What compute() would launch for `call`, for reports: "VARIANT: its configuration".
  // Empty without.
  virtual std::string launch_text(const layer_call& call) const {
    static_cast<void>(call);
    return {};
  }
  // Everything after group(). rows_cap 0: ok without a launch.
  virtual launch_status compute(const layer_call& call, void* stream) const = 0;
};

}  // namespace moetier::kernels::cuda
