#pragma once
// The launch configuration of the ladder kernels (kernels/cuda/sm90_ladder.cuh): a pure function of
// the expert's shape, the row tiles' height and the device's size, so that it is tested without a
// device. How many rows and tiles a launch will find is not known here: the device decides from the
// tile table (kernels/cuda/ladder_walk.hpp).
//
// The order over K is part of the result: both matrices are summed in fixed chunks that depend on
// the shape alone, so neither the split of the work nor the batch changes a row's bits.
//
// Thread: any (values, pure functions).

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::uint32_t k_ladder_tile_rows_max = 64;
inline constexpr std::uint32_t k_ladder_math_threads = 256;  // one warpgroup a strip
// Then one warp each: weights, activations, two of epilogue.
inline constexpr std::uint32_t k_ladder_threads = k_ladder_math_threads + 4 * 32;
inline constexpr std::uint32_t k_ladder_epilogue_warps = 2;
inline constexpr std::uint32_t k_ladder_records = 4;  // units known to a block ahead of their work
inline constexpr std::uint32_t k_ladder_known_tiles = 32;  // kept in shared memory, one a lane
inline constexpr std::uint32_t k_ladder_stages_max = 8;
inline constexpr std::uint32_t k_ladder_stages_min = 2;
// Sums of a unit between math and epilogue, f32, by row; four floats more than 256 keep the banks
// apart.
inline constexpr std::uint32_t k_ladder_staging_pitch = k_unit_rows + 4;
inline constexpr std::uint32_t k_ladder_chunks_max = 8;

// K of one matrix, cut into chunks; the last may be shorter, none is empty.
struct k_chunks {
  std::uint32_t blocks = 0;  // of 128 bytes of K
  std::uint32_t chunks = 0;  // 1..k_ladder_chunks_max
  std::uint32_t chunk_blocks = 0;

  bool operator==(const k_chunks&) const = default;
};

// Requires: blocks >= 1, chunk_blocks_min >= 1 (a K of fewer blocks is one chunk).
constexpr k_chunks cut_k(std::uint32_t blocks, std::uint32_t chunk_blocks_min) noexcept {
  const std::uint32_t most = blocks / chunk_blocks_min;
  const std::uint32_t wanted =
      most == 0 ? 1 : (most < k_ladder_chunks_max ? most : k_ladder_chunks_max);
  const auto chunk_blocks = static_cast<std::uint32_t>(ceil_div(blocks, wanted));
  return {.blocks = blocks,
          .chunks = static_cast<std::uint32_t>(ceil_div(blocks, chunk_blocks)),
          .chunk_blocks = chunk_blocks};
}

// One of the two products, as the kernel walks it: units of 256 page rows (two strips; the last may
// have one) times all of K, or one chunk of it.
struct ladder_product {
  std::uint32_t strips = 0;
  std::uint32_t pairs = 0;  // ceil(strips / 2)
  k_chunks k{};

  bool operator==(const ladder_product&) const = default;
};

struct ladder_launch {
  gemm_format format = gemm_format::bf16;
  std::uint32_t blocks = 0;  // one a multiprocessor
  std::uint32_t threads = k_ladder_threads;
  std::uint32_t tile_rows = 0;  // the most that a row tile may have
  std::uint32_t tiles_cap = 0;  // what the tile table has room for
  ladder_product fc1{};
  ladder_product fc2{};

  // A product may be split over K while its groups of rows times its pairs are at most this: what
  // the partial sums have room for.
  std::uint32_t split_groups = 0;

  // Shared memory: barriers and records, then these.
  std::uint32_t scales_at = 0;
  std::uint32_t scale_bytes = 0;  // weight scales of one unit; 0 for bf16
  std::uint32_t staging_at = 0;
  std::uint32_t ring_at = 0;
  std::uint32_t stage_bytes = 0;  // two weight tiles, then the activations of as much of K
  std::uint32_t stages = 0;
  std::uint32_t fc1_stages_in_flight = 0;  // weights of FC1 that are asked for and not yet there
  std::uint32_t shared_bytes = 0;

  // Of the workspace.
  std::uint32_t counters = 0;
  std::uint64_t partials_bytes = 0;

  bool operator==(const ladder_launch&) const = default;
};

// Nothing where tile_rows is no multiple of 8 in 8..64, the shape is empty or no multiple of its
// format's blocks, or shared memory cannot hold two stages.
// tiles_cap: the most row tiles that a launch may find; at least 1.
std::optional<ladder_launch> plan_ladder(const gemm_shape& shape, std::uint32_t tile_rows,
                                         std::uint32_t tiles_cap,
                                         const device_size& device) noexcept;

// "fp8 ladder: 132 blocks x 384 threads, rows 32, ..."
std::string to_string(const ladder_launch& launch);

}  // namespace moetier::kernels::cuda
