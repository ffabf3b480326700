#pragma once
// The launch configuration of the straight kernels (rows as M, tiles of 128 rows): a pure function
// of the expert's shape, the most row tiles that a call can have, and the device's size. It never
// calls CUDA. The grid follows the device, not the rows: clusters of two blocks fetch pairs of
// units of 128 rows x 256 page rows until none is left.
//
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::uint32_t k_straight_tile_rows = 128;
inline constexpr std::uint32_t k_straight_math_warps = 8;
inline constexpr std::uint32_t k_straight_threads = (k_straight_math_warps + 4) * 32;
inline constexpr std::uint32_t k_straight_stages = 4;
inline constexpr std::uint32_t k_straight_units = 2;  // units known ahead, the running one included
inline constexpr std::uint32_t k_straight_cluster = 2;  // blocks that share weights or rows
// Unit numbers on their way from a cluster's first block to its second: at most 3, see the walk.
inline constexpr std::uint32_t k_straight_numbers = 4;
// Blocks of K whose weight scales one unit's record holds.
constexpr std::uint32_t straight_scale_blocks_max(gemm_format format) noexcept {
  return format == gemm_format::fp8 ? 192 : 1;
}

// One stage: two weight tiles, one block of K of a row tile; wgmma wants multiples of 1024.
constexpr std::uint32_t straight_stage_bytes(gemm_format format) noexcept {
  return k_unit_strips * k_tile_bytes +
         static_cast<std::uint32_t>(
             round_up(k_straight_tile_rows / k_group_rows * group_bytes(format), 1024));
}
// FC1's outcome of one unit, as it will lie in `mid`: 128 intermediate columns.
constexpr std::uint32_t straight_staging_bytes(gemm_format format) noexcept {
  return k_straight_tile_rows / k_group_rows * group_bytes(format) *
         (128 / columns_of_block(format));
}
// Units with their weight scales, entries and router weights; row maxima; unit numbers; barriers.
constexpr std::uint32_t straight_record_bytes(gemm_format format) noexcept {
  return k_straight_units *
             (80 + straight_scale_blocks_max(format) * 16 + k_straight_tile_rows * 8) +
         k_straight_tile_rows * 4 + k_straight_numbers * 12 + 112;
}
constexpr std::uint32_t straight_shared_bytes(gemm_format format) noexcept {
  return k_straight_stages * straight_stage_bytes(format) + straight_staging_bytes(format) +
         straight_record_bytes(format);
}

struct straight_launch {
  gemm_format format = gemm_format::bf16;
  std::uint32_t blocks = 0;  // in whole clusters, at most one block a multiprocessor
  std::uint32_t threads = k_straight_threads;
  std::uint32_t stages = k_straight_stages;
  std::uint32_t shared_bytes = 0;
  std::uint32_t counters = 0;  // words of expert_gemm_args::counters

  bool operator==(const straight_launch&) const = default;
};

// nullopt: the device has no two multiprocessors, the shape is none of the kernels' (H or I no
// multiple of a block of K, bias with fp8, more blocks than a record holds), or a block's shared
// memory exceeds the device's.
std::optional<straight_launch> plan_straight(const gemm_shape& shape, std::uint32_t tiles_max,
                                             const device_size& device) noexcept;

std::string to_string(const straight_launch& launch);

}  // namespace moetier::kernels::cuda
