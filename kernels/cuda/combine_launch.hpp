#pragma once
// The weighted sum of partial mode where a row has more than one position: out[r] = sum of w * y
// over r's entries in ascending (slot, position), in f32 from +0, rounded once. The problem, and
// its launch configuration as a pure function. The device's version is combine_rows() in
// sm90_f32_combine.hpp, the twin reference::combine_rows(). Nothing here calls CUDA.
//
// Thread: any (values, pure functions).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::uint32_t k_combine_positions_max = 32;  // of a row: a lane each
inline constexpr std::uint32_t k_combine_threads = 256;
inline constexpr std::uint32_t k_combine_warps = k_combine_threads / 32;
inline constexpr std::uint32_t k_combine_lane_columns = 8;
inline constexpr std::uint32_t k_combine_columns = 32 * k_combine_lane_columns;  // of a warp
inline constexpr std::uint64_t k_combine_units_end = std::uint64_t{1} << 31;
inline constexpr std::uint32_t k_combine_blocks_per_multiprocessor = 4;

// Pointers are in the memory of whoever sums. y and out at multiples of 16 bytes, as are the
// pitches.
struct combine_args {
  const std::int32_t* slot_ids = nullptr;    // [rows_cap][k_in], -1 = no entry
  const float* weights = nullptr;            // [rows_cap][k_in]
  const std::uint32_t* rows_live = nullptr;  // rows at or beyond it are not written
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 1;         // 1..k_combine_positions_max
  std::uint32_t hidden_size = 0;  // a multiple of k_combine_lane_columns
  const std::byte* y = nullptr;   // unweighted, entry e at e * y_pitch_bytes
  std::size_t y_pitch_bytes = 0;
  out_type y_as = out_type::f32;
  std::byte* out = nullptr;
  std::size_t out_pitch_bytes = 0;
  out_type out_as = out_type::bf16;
};

constexpr std::uint64_t combine_strips(std::uint32_t hidden_size) noexcept {
  return ceil_div(hidden_size, k_combine_columns);
}

constexpr bool can_combine_rows(const combine_args& args) noexcept {
  const auto whole = [&args](const void* p, std::size_t pitch, out_type type) {
    return p != nullptr && reinterpret_cast<std::uintptr_t>(p) % 16 == 0 && pitch % 16 == 0 &&
           pitch >= std::size_t{args.hidden_size} * (type == out_type::bf16 ? 2 : 4);
  };
  return args.slot_ids != nullptr && args.weights != nullptr && args.rows_live != nullptr &&
         args.k_in >= 1 && args.k_in <= k_combine_positions_max && args.hidden_size >= 1 &&
         args.hidden_size % k_combine_lane_columns == 0 &&
         args.rows_cap * combine_strips(args.hidden_size) < k_combine_units_end &&
         whole(args.y, args.y_pitch_bytes, args.y_as) &&
         whole(args.out, args.out_pitch_bytes, args.out_as);
}

// A unit of work is one row times k_combine_columns columns, for one warp.
struct combine_plan {
  std::uint32_t grid = 1;
  std::uint32_t strips = 1;  // of k_combine_columns

  bool operator==(const combine_plan&) const = default;
};

// Requires: can_combine_rows() of the problem.
constexpr combine_plan plan_combine(const combine_args& args, const device_size& device) noexcept {
  const std::uint64_t strips = combine_strips(args.hidden_size);
  const std::uint64_t blocks = ceil_div(args.rows_cap * strips, k_combine_warps);
  const std::uint64_t most =
      std::uint64_t{device.multiprocessors} * k_combine_blocks_per_multiprocessor;
  return {.grid = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, most)),
          .strips = static_cast<std::uint32_t>(strips)};
}

}  // namespace moetier::kernels::cuda
