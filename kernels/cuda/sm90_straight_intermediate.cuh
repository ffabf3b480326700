#pragma once
// FC1's epilogue in the straight kernel: bias, activation, then 1x128 codes with their scales (fp8,
// bit rules of kernels/quant/row_quantiser.hpp) or bf16, into the block's staging memory as `mid`
// wants them. NaN and Inf stay in their row and are not lost.
//
// Thread: one math warpgroup; with fp8 and shared rows both, warp by warp.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/sm90_straight_product.cuh"

namespace moetier::kernels::cuda::straight {

// Which rows and columns of a unit's accumulators a thread holds.
struct thread_place {
  std::uint32_t warp;  // of the warpgroup
  std::uint32_t lane;

  __device__ __forceinline__ std::uint32_t row() const { return warp * 16 + lane / 4; }  // and + 8
  __device__ __forceinline__ std::uint32_t column() const { return lane % 4 * 2; }       // and + 1
};

// Fragment f of a strip: columns 8 f + column() + {0, 1}, rows row() and row() + 8.
__device__ __forceinline__ void add_bias(float* strip, const float* bias) {
#pragma unroll
  for (int f = 0; f < 16; ++f) {
    const float2 b = __ldg(reinterpret_cast<const float2*>(bias + 8 * f));
    strip[4 * f] += b.x;
    strip[4 * f + 1] += b.y;
    strip[4 * f + 2] += b.x;
    strip[4 * f + 3] += b.y;
  }
}

// Gates lie in even fragments, their ups in the next.
__device__ __forceinline__ void clamp(float* strip, float limit) {
#pragma unroll
  for (int f = 0; f < 16; f += 2) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      float& g = strip[4 * f + c];
      float& u = strip[4 * f + 4 + c];
      g = g > limit ? limit : g;  // not fminf: NaN must pass
      u = u > limit ? limit : u;
      u = u < -limit ? -limit : u;
    }
  }
}

__device__ __forceinline__ float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Of |x|; NaN wins.
__device__ __forceinline__ float larger_magnitude(float most, float x) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(most), "f"(fabsf(x)));
  return y;
}

// g * sigmoid(alpha * g) * u of two neighbours in a row, in place of g. `exponent` is -alpha times
// the binary logarithm of e. One reciprocal serves both, as the special-function unit bounds this
// epilogue; so that the product of the two denominators stays finite, sigmoid never falls below
// 2^-62. NaN of one may reach the other: the row is lost anyway.
__device__ __forceinline__ void activate_two(float (&g)[2], const float (&u)[2], float exponent) {
  const float a = 1.0F + power_of_2(fminf(exponent * g[0], 62.0F));
  const float b = 1.0F + power_of_2(fminf(exponent * g[1], 62.0F));
  const float r = reciprocal(a * b);
  g[0] *= r * b * u[0];
  g[1] *= r * a * u[1];
}

// One strip's gates become its 64 intermediates, in place. `column` = the thread's first page row
// of the strip, from the unit's first.
template <wgmma::gemm_number Number>
__device__ __forceinline__ void activate(float* strip, const unit& of, std::uint32_t column) {
  if constexpr (!Number::promoted) {
    if (of.bias != nullptr) add_bias(strip, of.bias + column);
  }
  if (of.limit < __int_as_float(0x7f800000)) clamp(strip, of.limit);
  const float exponent = -1.44269504F * of.alpha;
#pragma unroll
  for (int f = 0; f < 16; f += 2) {
#pragma unroll
    for (int c = 0; c < 4; c += 2) {
      float* const gate = strip + 4 * f + c;
      float u[2] = {gate[4], gate[5]};
      if constexpr (!Number::promoted) {
        u[0] += of.beta;
        u[1] += of.beta;
      }
      activate_two(reinterpret_cast<float(&)[2]>(*gate), u, exponent);
    }
  }
}

// ---- fp8
// -----------------------------------------------------------------------------------------

struct block_scale {
  float scale;
  float inverse;
  float zero;  // added to each value: makes -0 a 0 where all are zeros, and changes nothing else
};
// By the largest magnitude, or NaN.
__device__ __forceinline__ block_scale scale_of(float most) {
  float scale = fmaxf(__fdiv_rn(most, 448.0F), 0x1p-126F);
  if (most == 0.0F) scale = 1.0F;
  if (!(most < __int_as_float(0x7f800000))) scale = __int_as_float(0x7fc00000);
  return {scale, __frcp_rn(scale), most == 0.0F ? 0.0F : -0.0F};
}

__device__ __forceinline__ std::uint16_t codes_of(float a, float b, const block_scale& by) {
  const float2 scaled{__fmaf_rn(a, by.inverse, by.zero), __fmaf_rn(b, by.inverse, by.zero)};
  return __nv_cvt_float2_to_fp8x2(scaled, __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ void raise_maxima(const float* strip, float (&most)[2]) {
#pragma unroll
  for (int f = 0; f < 16; f += 2) {
#pragma unroll
    for (int c = 0; c < 4; ++c) most[c >> 1] = larger_magnitude(most[c >> 1], strip[4 * f + c]);
  }
}

// One strip's 64 codes of one of the thread's rows, from the row's first byte in staging.
__device__ __forceinline__ void write_codes(std::byte* row_bytes, std::uint32_t row,
                                            std::uint32_t strip_number, const float* strip,
                                            int half, const block_scale& by) {
#pragma unroll
  for (int f = 0; f < 16; f += 2) {
    // 16 bytes are two pairs of fragments; a strip has four of them.
    const std::uint32_t chunk = (strip_number * 4 + f / 4) ^ (row & 7u);
    *reinterpret_cast<std::uint16_t*>(row_bytes + chunk * 16 + (f / 2 & 1) * 8) =
        codes_of(strip[4 * f + 2 * half], strip[4 * f + 2 * half + 1], by);
  }
}

__device__ __forceinline__ void stage_codes(block_shared<wgmma::e4m3>& shared, const unit& of,
                                            const sums& totals, const share& part,
                                            const thread_place& at) {
  // NaN must not get lost in a maximum. Four threads hold a row; where the warpgroups share rows,
  // each has half of a row's 128.
  float most[2] = {0.0F, 0.0F};
  raise_maxima(totals, most);
  if (part.both) raise_maxima(totals + 64, most);
#pragma unroll
  for (int lanes = 1; lanes < 4; lanes *= 2) {
    most[0] = larger_magnitude(most[0], __shfl_xor_sync(0xffffffffu, most[0], lanes));
    most[1] = larger_magnitude(most[1], __shfl_xor_sync(0xffffffffu, most[1], lanes));
  }
  if (!part.both) {
    const std::uint32_t row = at.row();
    if (at.lane % 4 == 0) {
      shared.row_maxima[part.strip][row] = most[0];
      shared.row_maxima[part.strip][row + 8] = most[1];
    }
    ptx::named_sync(k_pair_barrier + at.warp, 64);
    most[0] = larger_magnitude(most[0], shared.row_maxima[part.strip ^ 1u][row]);
    most[1] = larger_magnitude(most[1], shared.row_maxima[part.strip ^ 1u][row + 8]);
  }
  std::byte* const scales = shared.staging + of.groups * k_group_code_bytes;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t row = part.first_row + at.row() + half * 8;
    if (row / k_group_rows >= of.groups) continue;
    const block_scale by = scale_of(most[half]);
    std::byte* const row_bytes = shared.staging + row * k_tile_row_bytes + at.column();
    write_codes(row_bytes, row, part.strip, totals, half, by);
    if (part.both) write_codes(row_bytes, row, 1, totals + 64, half, by);
    if (at.lane % 4 == 0 && part.strip == 0) *reinterpret_cast<float*>(scales + row * 4) = by.scale;
  }
}

// ---- bf16
// ----------------------------------------------------------------------------------------

// A strip gives one block of K of `mid`: 64 columns.
__device__ __forceinline__ void stage_bf16(std::byte* block, std::uint32_t groups,
                                           const float* strip, std::uint32_t first_row,
                                           const thread_place& at) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t row = first_row + at.row() + half * 8;
    if (row / k_group_rows >= groups) continue;
    std::byte* const columns = block + row * k_tile_row_bytes + at.column() * 2;
#pragma unroll
    for (int f = 0; f < 16; f += 2) {
      const float* values = strip + 4 * f + 2 * half;
      *reinterpret_cast<__nv_bfloat162*>(columns + ((f / 2) ^ (row & 7u)) * 16) =
          __floats2bfloat162_rn(values[0], values[1]);
    }
  }
}

// Requires: staging is free.
template <wgmma::gemm_number Number>
__device__ __forceinline__ void stage_intermediates(block_shared<Number>& shared, const unit& of,
                                                    sums& totals, const share& part,
                                                    const thread_place& at) {
  const std::uint32_t column = part.strip * k_tile_rows + at.column();
  activate<Number>(totals, of, column);
  if (part.both) activate<Number>(totals + 64, of, column + k_tile_rows);
  if constexpr (Number::promoted) {
    stage_codes(shared, of, totals, part, at);
  } else {
    std::byte* const block = shared.staging + part.strip * of.groups * k_group_code_bytes;
    stage_bf16(block, of.groups, totals, part.first_row, at);
    if (part.both)
      stage_bf16(block + of.groups * k_group_code_bytes, of.groups, totals + 64, part.first_row,
                 at);
  }
}

}  // namespace moetier::kernels::cuda::straight
