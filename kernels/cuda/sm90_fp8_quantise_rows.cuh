#pragma once
// The row quantiser 1 x 128: rows by tile table into groups of 8 rows x 128 E4M3 codes and 8 f32
// scales (kernels/cuda/sm90_geometry.hpp), equal in bits to kernels/quant/row_quantiser.hpp; every
// operation rounds to nearest even, without flush to zero. Rows f32 or bf16, H a multiple of 128.
// Bound by memory: it reads a row once an entry and writes 1.03 bytes a column.

#include <cstdint>

#include <cuda_fp8.h>

#include "kernels/cuda/row_walk.cuh"

namespace moetier::kernels::cuda {

// Two neighbours as E4M3, the first in the low byte; saturating.
__device__ inline std::uint32_t e4m3_pair(float a, float b) {
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
}

// The scale of 128 columns and what their codes need: NaN blocks get code 0x7f whatever is in them.
struct block_scale {
  float scale;
  float inverse;
  std::uint32_t keep;  // 0 where all codes are `fill`
  std::uint32_t fill;
};
// `most` = bits of the largest magnitude: NaN and infinity compare above all.
__device__ inline block_scale scale_of(std::uint32_t most) {
  if (most == 0) return {1.0F, 1.0F, 0, 0};
  if (most >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), 0.0F, 0, 0x7f7f7f7fu};
  const float scale = fmaxf(__fdiv_rn(__uint_as_float(most), 448.0F), 0x1p-126F);
  return {scale, __frcp_rn(scale), ~0u, 0};
}

// Of the eight lanes of a row.
__device__ inline std::uint32_t largest_of_row(std::uint32_t most) {
  most = max(most, __shfl_xor_sync(~0u, most, 1));
  most = max(most, __shfl_xor_sync(~0u, most, 2));
  return max(most, __shfl_xor_sync(~0u, most, 4));
}

// bf16 rows: eight columns from 8 * lane, and eight from 64 + 8 * lane.
struct quantised_bf16_piece {
  static constexpr gemm_format k_format = gemm_format::fp8;
  static constexpr std::uint32_t k_passes = 4;
  std::uint32_t words[8];  // two columns each; then codes in the first four
  float scale;

  __device__ void clear() {
#pragma unroll
    for (std::uint32_t& word : words) word = 0;
  }
  template <bool Again>
  __device__ void load(const std::byte* row, std::uint32_t block, std::uint32_t lane) {
    const auto* const at = reinterpret_cast<const uint4*>(row) + block * 16 + lane;
#pragma unroll
    for (std::uint32_t h = 0; h < 2; ++h) {
      const uint4 half = read_row<Again>(at + h * 8);
      words[h * 4] = half.x;
      words[h * 4 + 1] = half.y;
      words[h * 4 + 2] = half.z;
      words[h * 4 + 3] = half.w;
    }
  }
  __device__ void finish() {
    std::uint32_t pair = 0;  // two magnitudes of 16 bits
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) pair = __vmaxu2(pair, words[i] & 0x7fff7fffu);
    const block_scale s = scale_of(largest_of_row(max(pair & 0xffffu, pair >> 16) << 16));
    const auto low = [](std::uint32_t w) { return __uint_as_float(w << 16); };
    const auto high = [](std::uint32_t w) { return __uint_as_float(w & 0xffff0000u); };
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t a = words[2 * i];
      const std::uint32_t b = words[2 * i + 1];
      const std::uint32_t four = e4m3_pair(low(a) * s.inverse, high(a) * s.inverse) |
                                 e4m3_pair(low(b) * s.inverse, high(b) * s.inverse) << 16;
      words[i] = (four & s.keep) | s.fill;
    }
    scale = s.scale;
  }
  __device__ void store(std::byte* group, std::uint32_t r, std::uint32_t lane) const {
#pragma unroll
    for (std::uint32_t h = 0; h < 2; ++h)
      *reinterpret_cast<uint2*>(group + swizzled(r, h * 64 + lane * 8)) =
          make_uint2(words[2 * h], words[2 * h + 1]);
  }
};

// f32 rows: four columns from each of 4 * lane + 0, 32, 64, 96.
struct quantised_f32_piece {
  static constexpr gemm_format k_format = gemm_format::fp8;
  static constexpr std::uint32_t k_passes = 2;
  float4 quarters[4];
  std::uint32_t codes[4];
  float scale;

  __device__ void clear() {
#pragma unroll
    for (float4& q : quarters) q = make_float4(0, 0, 0, 0);
  }
  template <bool Again>
  __device__ void load(const std::byte* row, std::uint32_t block, std::uint32_t lane) {
    const auto* const at = reinterpret_cast<const float4*>(row) + block * 32 + lane;
#pragma unroll
    for (std::uint32_t q = 0; q < 4; ++q) quarters[q] = read_row<Again>(at + q * 8);
  }
  __device__ void finish() {
    std::uint32_t most = 0;
#pragma unroll
    for (const float4& q : quarters) {
      const auto bits = [](float x) { return __float_as_uint(x) & 0x7fffffffu; };
      most = max(max(most, max(bits(q.x), bits(q.y))), max(bits(q.z), bits(q.w)));
    }
    const block_scale s = scale_of(largest_of_row(most));
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const float4& q = quarters[i];
      const std::uint32_t four = e4m3_pair(q.x * s.inverse, q.y * s.inverse) |
                                 e4m3_pair(q.z * s.inverse, q.w * s.inverse) << 16;
      codes[i] = (four & s.keep) | s.fill;
    }
    scale = s.scale;
  }
  __device__ void store(std::byte* group, std::uint32_t r, std::uint32_t lane) const {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
      *reinterpret_cast<std::uint32_t*>(group + swizzled(r, i * 32 + lane * 4)) = codes[i];
  }
};

template <row_piece Piece, gather_way Way>
__global__ void __launch_bounds__(k_gather_threads, k_gather_blocks_per_multiprocessor)
    quantise_rows_kernel(const gather_rows_args args, const gather_rows_plan plan) {
  gather_pieces<Piece, Way>(args, plan);
}

}  // namespace moetier::kernels::cuda
