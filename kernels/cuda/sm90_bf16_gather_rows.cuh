#pragma once
// Rows by tile table into groups of 8 rows x 64 bf16 (kernels/cuda/sm90_geometry.hpp): bf16 rows as
// they are, f32 rows rounded to nearest even. H a multiple of 64. Bound by memory: it reads a row
// once an entry and writes 2 bytes a column.

#include <cstdint>

#include "kernels/cuda/row_walk.cuh"

namespace moetier::kernels::cuda {

// Eight columns from 8 * lane.
struct copied_bf16_piece {
  static constexpr gemm_format k_format = gemm_format::bf16;
  static constexpr std::uint32_t k_passes = 4;
  uint4 columns;

  __device__ void clear() {}
  template <bool Again>
  __device__ void load(const std::byte* row, std::uint32_t block, std::uint32_t lane) {
    columns = read_row<Again>(reinterpret_cast<const uint4*>(row) + block * 8 + lane);
  }
  __device__ void finish() {}
  __device__ void store(std::byte* group, std::uint32_t r, std::uint32_t lane) const {
    *reinterpret_cast<uint4*>(group + swizzled(r, lane * 16)) = columns;
  }
};

// Four columns from each of 4 * lane + 0, 32.
struct rounded_f32_piece {
  static constexpr gemm_format k_format = gemm_format::bf16;
  static constexpr std::uint32_t k_passes = 2;
  float4 halves[2];
  __nv_bfloat162 pairs[4];

  __device__ void clear() {}
  template <bool Again>
  __device__ void load(const std::byte* row, std::uint32_t block, std::uint32_t lane) {
    const auto* const at = reinterpret_cast<const float4*>(row) + block * 16 + lane;
    halves[0] = read_row<Again>(at);
    halves[1] = read_row<Again>(at + 8);
  }
  __device__ void finish() {
#pragma unroll
    for (std::uint32_t h = 0; h < 2; ++h) {
      pairs[2 * h] = __floats2bfloat162_rn(halves[h].x, halves[h].y);
      pairs[2 * h + 1] = __floats2bfloat162_rn(halves[h].z, halves[h].w);
    }
  }
  __device__ void store(std::byte* group, std::uint32_t r, std::uint32_t lane) const {
#pragma unroll
    for (std::uint32_t h = 0; h < 2; ++h)
      *reinterpret_cast<uint2*>(group + swizzled(r, h * 64 + lane * 8)) =
          make_uint2(reinterpret_cast<const std::uint32_t&>(pairs[2 * h]),
                     reinterpret_cast<const std::uint32_t&>(pairs[2 * h + 1]));
  }
};

template <row_piece Piece, gather_way Way>
__global__ void __launch_bounds__(k_gather_threads, k_gather_blocks_per_multiprocessor)
    gather_rows_kernel(const gather_rows_args args, const gather_rows_plan plan) {
  gather_pieces<Piece, Way>(args, plan);
}

}  // namespace moetier::kernels::cuda
