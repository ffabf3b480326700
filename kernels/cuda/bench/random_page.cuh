#pragma once
// Normal numbers by counter: element e of a matrix comes from mix(seed + e / 2) and its pair, by
// Box and Muller, so a fill depends on nothing but the seed. One thread makes 16 bytes at a time.

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/bench/random_page.hpp"
#include "schemas/base/mix.hpp"

namespace moetier::kernels::cuda::bench {

__device__ __forceinline__ float uniform_above_zero(std::uint32_t bits) {
  return (static_cast<float>(bits >> 8) + 1.0F) * 0x1p-24F;
}

__device__ __forceinline__ float2 normal_pair(std::uint64_t seed, std::uint64_t number) {
  const std::uint64_t drawn = mix(seed ^ number);
  const float radius =
      sqrtf(-2.0F * logf(uniform_above_zero(static_cast<std::uint32_t>(drawn >> 32))));
  float sine;
  float cosine;
  sincospif(2.0F * uniform_above_zero(static_cast<std::uint32_t>(drawn)), &sine, &cosine);
  return {radius * cosine, radius * sine};
}

__device__ __forceinline__ std::uint32_t two_bf16(float2 v) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(v.x, v.y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ __forceinline__ std::uint32_t four_e4m3(float2 a, float2 b) {
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2(a, __NV_SATFINITE, __NV_E4M3);
  const std::uint32_t high = __nv_cvt_float2_to_fp8x2(b, __NV_SATFINITE, __NV_E4M3);
  return low | high << 16;
}

__device__ __forceinline__ float2 times(float2 v, float factor) {
  return {v.x * factor, v.y * factor};
}

// 16 bytes of weights.
template <gemm_format Format>
__device__ __forceinline__ uint4 random_chunk(std::uint64_t seed, std::uint64_t chunk) {
  if constexpr (Format == gemm_format::fp8) {
    const auto word = [&](std::uint64_t i) {
      const std::uint64_t pair = chunk * 8 + i * 2;
      return four_e4m3(times(normal_pair(seed, pair), 100.0F),
                       times(normal_pair(seed, pair + 1), 100.0F));
    };
    return {word(0), word(1), word(2), word(3)};
  } else {
    const auto word = [&](std::uint64_t i) {
      return two_bf16(times(normal_pair(seed, chunk * 4 + i), 0.01F));
    };
    return {word(0), word(1), word(2), word(3)};
  }
}

// One matrix: `rows` of its strips' rows are its own.
template <gemm_format Format>
__global__ void fill_matrix_kernel(uint4* matrix, std::uint32_t strips, std::uint32_t blocks,
                                   std::uint32_t rows, std::uint64_t seed) {
  constexpr std::uint64_t k_chunks_of_tile = k_tile_bytes / 16;
  const std::uint64_t chunks = std::uint64_t{strips} * blocks * k_chunks_of_tile;
  for (std::uint64_t c = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; c < chunks;
       c += std::uint64_t{gridDim.x} * blockDim.x) {
    const std::uint64_t row =
        c / k_chunks_of_tile / blocks * k_tile_rows + c % k_chunks_of_tile * 16 / k_tile_row_bytes;
    matrix[c] = row < rows ? random_chunk<Format>(seed, c) : uint4{};
  }
}

enum class small_values { scales, biases };

template <small_values What>
__global__ void fill_small_kernel(float* values, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    if constexpr (What == small_values::scales) {
      values[i] =
          1e-4F * (0.5F + uniform_above_zero(static_cast<std::uint32_t>(mix(seed ^ i) >> 32)));
    } else {
      values[i] = 0.1F * normal_pair(seed, i).x;
    }
  }
}

__global__ void fill_rows_kernel(std::uint32_t* pairs, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    pairs[i] = two_bf16(normal_pair(seed, i));
}

__global__ void fill_codes_kernel(uint4* chunks, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    chunks[i] = random_chunk<gemm_format::fp8>(seed, i);
}

__global__ void fill_constants_kernel(float* to, float alpha, float beta, float limit) {
  to[0] = alpha;
  to[1] = beta;
  to[2] = limit > 0 ? limit : __int_as_float(0x7f800000);
  to[3] = 0;
}

}  // namespace moetier::kernels::cuda::bench
