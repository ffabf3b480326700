#pragma once
// The oracle's steps, one kernel each: rows as the products see them, FC1 with the activation, the
// intermediate as FC2 sees it, FC2 with bias and weighted sum. One warp a column of a product, each
// lane 16 bytes of K at a time. Slow and plain on purpose.

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/bench/expert_oracle.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda::bench {

inline constexpr std::uint32_t k_oracle_block = 128;  // columns that share a row's scale
inline constexpr std::uint32_t k_oracle_threads = 256;

// One of 128 values that share a scale, quantised and back. Called by all 128 threads of a block.
__device__ __forceinline__ double through_fp8(float value) {
  __shared__ float largest[k_oracle_block / 32];
  float a = fabsf(value);
  for (int step = 16; step > 0; step /= 2) a = fmaxf(a, __shfl_xor_sync(~0U, a, step));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = a;
  __syncthreads();
  a = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
  if (a == 0) return 0;
  const float scale = fmaxf(__fdiv_rn(a, 448.0F), 0x1p-126F);
  const __nv_fp8_storage_t code =
      __nv_cvt_float_to_fp8(__fmul_rn(value, __fdiv_rn(1.0F, scale)), __NV_SATFINITE, __NV_E4M3);
  return double{__half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)))} * scale;
}

// Requires: one block a sampled row and 128 columns.
template <gemm_format Format>
__global__ void __launch_bounds__(k_oracle_block) oracle_rows_kernel(const oracle_args a) {
  const std::uint32_t h = a.shape.hidden_size;
  const std::uint32_t blocks = (h + k_oracle_block - 1) / k_oracle_block;
  const std::uint32_t sample = blockIdx.x / blocks;
  const std::uint32_t column = blockIdx.x % blocks * k_oracle_block + threadIdx.x;
  const auto* row =
      reinterpret_cast<const __nv_bfloat16*>(a.rows) + std::uint64_t{a.sampled[sample]} * h;
  const float value = column < h ? __bfloat162float(row[column]) : 0.0F;
  const double seen = Format == gemm_format::fp8 ? through_fp8(value) : double{value};
  if (column < h) a.x[std::uint64_t{sample} * h + column] = seen;
}

// The intermediate of fp8 layers, in place. Requires: one block an entry and 128 columns.
__global__ void __launch_bounds__(k_oracle_block) oracle_requantise_kernel(const oracle_args a) {
  double& value = a.mid[std::uint64_t{blockIdx.x} * k_oracle_block + threadIdx.x];
  value = through_fp8(static_cast<float>(value));
}

// Lane's part of sum over k of matrix(n, k) * v[k]; with fp8, of scale(k / 128) * that.
template <gemm_format Format>
__device__ __forceinline__ double lane_product(const std::byte* matrix, std::uint32_t blocks,
                                               std::uint32_t n, std::uint32_t columns,
                                               const float* scales, const double* v) {
  constexpr std::uint32_t k_of_chunk = Format == gemm_format::fp8 ? 16 : 8;
  double sum = 0;
  for (std::uint32_t k = threadIdx.x % 32 * k_of_chunk; k < columns; k += 32 * k_of_chunk) {
    const std::byte* chunk = matrix + weight_offset(Format, blocks, n, k);
    double part = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < k_of_chunk; ++i) {
      double w;
      if constexpr (Format == gemm_format::fp8) {
        const auto code = static_cast<__nv_fp8_storage_t>(chunk[i]);
        w = __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
      } else {
        w = __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(chunk)[i]);
      }
      part += w * v[k + i];
    }
    if constexpr (Format == gemm_format::fp8) part *= scales[k / 128];
    sum += part;
  }
  return sum;
}

__device__ __forceinline__ double sum_of_warp(double v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0U, v, step);
  return v;
}

__device__ __forceinline__ double activated(gemm_activation kind, const float* constants, double g,
                                            double u) {
  const double limit = constants[2];
  g = fmin(g, limit);
  u = fmin(fmax(u, -limit), limit);
  if (kind == gemm_activation::swiglu) return g / (1.0 + exp(-g)) * u;
  return g / (1.0 + exp(-double{constants[0]} * g)) * (u + constants[1]);
}

// FC1 and activation. One warp an entry's column.
template <gemm_format Format>
__global__ void __launch_bounds__(k_oracle_threads) oracle_mid_kernel(const oracle_args a) {
  const std::uint32_t h = a.shape.hidden_size;
  const std::uint32_t columns = a.shape.intermediate_size;
  const std::uint64_t task = std::uint64_t{blockIdx.x} * (k_oracle_threads / 32) + threadIdx.x / 32;
  const std::uint64_t entry = task / columns;
  const auto i = static_cast<std::uint32_t>(task % columns);
  if (entry >= std::uint64_t{a.samples} * a.k) return;
  const std::uint64_t sample = entry / a.k;
  const std::int32_t slot = a.slot_ids[std::uint64_t{a.sampled[sample]} * a.k + entry % a.k];
  const std::byte* page = a.pages[slot];
  const auto* scales = reinterpret_cast<const float*>(page + a.layout.scales1) +
                       std::uint64_t{i / 128} * a.layout.scale_pitch1;
  const auto product = [&](std::uint32_t n, const float* s) {
    return sum_of_warp(
        lane_product<Format>(page + a.layout.fc1, a.layout.fc1_blocks, n, h, s, a.x + sample * h));
  };
  const std::uint64_t up_scales = std::uint64_t{columns / 128} * a.layout.scale_pitch1;
  double g = product(gate_page_row(i), scales);
  double u = product(up_page_row(i), scales + up_scales);
  if (threadIdx.x % 32 != 0) return;
  if (a.shape.bias) {
    const auto* bias = reinterpret_cast<const float*>(page + a.layout.bias1);
    g += bias[gate_page_row(i)];
    u += bias[up_page_row(i)];
  }
  const auto* constants = reinterpret_cast<const float*>(page + a.layout.constants);
  a.mid[entry * columns + i] = activated(a.activation, constants, g, u);
}

// FC2, bias, weighted sum over the row's entries. One warp a row's column.
template <gemm_format Format>
__global__ void __launch_bounds__(k_oracle_threads) oracle_out_kernel(const oracle_args a) {
  const std::uint32_t h = a.shape.hidden_size;
  const std::uint32_t columns = a.shape.intermediate_size;
  const std::uint64_t task = std::uint64_t{blockIdx.x} * (k_oracle_threads / 32) + threadIdx.x / 32;
  const std::uint64_t sample = task / h;
  const auto n = static_cast<std::uint32_t>(task % h);
  if (sample >= a.samples) return;
  double out = 0;
  for (std::uint32_t j = 0; j < a.k; ++j) {
    const std::uint64_t entry = std::uint64_t{a.sampled[sample]} * a.k + j;
    const std::byte* page = a.pages[a.slot_ids[entry]];
    const auto* scales = reinterpret_cast<const float*>(page + a.layout.scales2) +
                         std::uint64_t{n / 128} * a.layout.scale_pitch2;
    double y =
        sum_of_warp(lane_product<Format>(page + a.layout.fc2, a.layout.fc2_blocks, n, columns,
                                         scales, a.mid + (sample * a.k + j) * columns));
    if (a.shape.bias) y += reinterpret_cast<const float*>(page + a.layout.bias2)[n];
    out += a.weights[entry] * y;
  }
  if (threadIdx.x % 32 == 0) a.out[sample * h + n] = out;
}

}  // namespace moetier::kernels::cuda::bench
