#pragma once
// The weighted sum of partial mode: each warp takes a row and 256 columns, ranks the row's
// positions by (slot, position) with one position a lane, and sums p = fma(w, y, p) in that order
// from +0. Several entries are loaded before the first is added. Bound by memory: y is read once.

#include <cstdint>

#include <cuda_bf16.h>

#include "kernels/cuda/combine_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda {

// Eight columns of one lane in the type of y.
struct combine_bf16_columns {
  static constexpr std::uint32_t k_in_flight = 8;  // entries
  uint4 words;
  __device__ void load(const std::byte* at) { words = __ldcs(reinterpret_cast<const uint4*>(at)); }
  __device__ void add_to(float (&sums)[k_combine_lane_columns], float weight) const {
    const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      sums[2 * i] = __fmaf_rn(weight, __uint_as_float(pairs[i] << 16), sums[2 * i]);
      sums[2 * i + 1] = __fmaf_rn(weight, __uint_as_float(pairs[i] & 0xffff0000u), sums[2 * i + 1]);
    }
  }
};
struct combine_f32_columns {
  static constexpr std::uint32_t k_in_flight = 4;
  float4 halves[2];
  __device__ void load(const std::byte* at) {
    halves[0] = __ldcs(reinterpret_cast<const float4*>(at));
    halves[1] = __ldcs(reinterpret_cast<const float4*>(at) + 1);
  }
  __device__ void add_to(float (&sums)[k_combine_lane_columns], float weight) const {
    const float columns[8] = {halves[0].x, halves[0].y, halves[0].z, halves[0].w,
                              halves[1].x, halves[1].y, halves[1].z, halves[1].w};
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) sums[i] = __fmaf_rn(weight, columns[i], sums[i]);
  }
};

__device__ inline void store_columns(std::byte* at, out_type type,
                                     const float (&sums)[k_combine_lane_columns]) {
  if (type == out_type::f32) {
    auto* const out = reinterpret_cast<float4*>(at);
    __stcs(out, make_float4(sums[0], sums[1], sums[2], sums[3]));
    __stcs(out + 1, make_float4(sums[4], sums[5], sums[6], sums[7]));
    return;
  }
  std::uint32_t words[4];
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(sums[2 * i], sums[2 * i + 1]);
    words[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  __stcs(reinterpret_cast<uint4*>(at), make_uint4(words[0], words[1], words[2], words[3]));
}

// The position whose rank in ascending (slot, position) is this lane's number; positions without an
// entry come last. Requires: all lanes; slot -1 in lanes beyond the row's positions.
__device__ inline std::uint32_t position_of_rank(std::int32_t slot, std::uint32_t positions) {
  const std::uint32_t lane = threadIdx.x % 32;
  const auto key = static_cast<std::uint32_t>(slot);  // -1 is above all
  std::uint32_t rank = lane < positions ? 0 : lane;
  for (std::uint32_t j = 0; j < positions; ++j) {
    const std::uint32_t other = __shfl_sync(~0u, key, j);
    rank += lane < positions && (other < key || (other == key && j < lane)) ? 1u : 0u;
  }
  // Ranks are a permutation of the lanes: each lane finds the one that holds its number.
  std::uint32_t position = 0;
  for (std::uint32_t j = 0; j < positions; ++j) {
    const std::uint32_t r = __shfl_sync(~0u, rank, j);
    position = r == lane ? j : position;
  }
  return position;
}

template <class Columns>
__global__ void __launch_bounds__(k_combine_threads, k_combine_blocks_per_multiprocessor)
    combine_kernel(const combine_args args, const combine_plan plan) {
  const std::uint32_t lane = threadIdx.x % 32;
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();
  const std::uint32_t units = min(*args.rows_live, args.rows_cap) * plan.strips;
  for (std::uint32_t unit = blockIdx.x * k_combine_warps + threadIdx.x / 32; unit < units;
       unit += gridDim.x * k_combine_warps) {
    // A row's entries in order, one a lane.
    const std::size_t r = unit / plan.strips;
    const bool has_position = lane < args.k_in;
    const std::int32_t slot = has_position ? args.slot_ids[r * args.k_in + lane] : -1;
    const float given = has_position ? args.weights[r * args.k_in + lane] : 0.0F;
    const auto entries = static_cast<std::uint32_t>(__popc(__ballot_sync(~0u, slot >= 0)));
    const std::uint32_t position = position_of_rank(slot, args.k_in);
    const float weight = __shfl_sync(~0u, given, static_cast<int>(position));

    // Sum.
    const std::uint32_t column =
        unit % plan.strips * k_combine_columns + lane * k_combine_lane_columns;
    const bool inside = column < args.hidden_size;
    const std::byte* const y = args.y + std::size_t{column} * (args.y_as == out_type::bf16 ? 2 : 4);
    float sums[k_combine_lane_columns] = {};
    for (std::uint32_t first = 0; first < entries; first += Columns::k_in_flight) {
      Columns columns[Columns::k_in_flight];
#pragma unroll
      for (std::uint32_t i = 0; i < Columns::k_in_flight; ++i) {
        if (first + i >= entries) break;
        const std::size_t entry =
            r * args.k_in + __shfl_sync(~0u, position, static_cast<int>(first + i));
        if (inside) columns[i].load(y + entry * args.y_pitch_bytes);
      }
#pragma unroll
      for (std::uint32_t i = 0; i < Columns::k_in_flight; ++i) {
        if (first + i >= entries) break;
        const float w = __shfl_sync(~0u, weight, static_cast<int>(first + i));
        columns[i].add_to(sums, w);
      }
    }

    // Round once.
    const std::size_t out_bytes = args.out_as == out_type::bf16 ? 2 : 4;
    if (inside)
      store_columns(args.out + r * args.out_pitch_bytes + column * out_bytes, args.out_as, sums);
  }
}

}  // namespace moetier::kernels::cuda
