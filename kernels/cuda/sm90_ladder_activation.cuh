#pragma once
// From FC1's sums to FC2's rows, in f32 and four columns a lane: the activation, and for fp8 the
// row quantiser, one warp a block of 128 columns (rules: kernels/quant/row_quantiser.hpp).

#include <cstdint>

#include <cuda_fp8.h>

#include "kernels/cuda/expert_gemm_args.hpp"

namespace moetier::kernels::cuda::ladder {

struct activation_constants {
  float alpha = 0;
  float beta = 0;
  float limit = 0;  // +inf = no clamp
};

// Comparisons keep NaN where min and max would drop it.
__device__ __forceinline__ float activate(gemm_activation kind, const activation_constants& c,
                                          float g, float u) {
  g = g > c.limit ? c.limit : g;
  u = u > c.limit ? c.limit : u;
  u = u < -c.limit ? -c.limit : u;
  const bool biased = kind == gemm_activation::swiglu_bias;
  const float slope = biased ? c.alpha : 1.0F;
  const float shifted = biased ? u + c.beta : u;
  return __fdividef(g, 1.0F + __expf(-slope * g)) * shifted;
}
__device__ __forceinline__ float4 activate(gemm_activation kind, const activation_constants& c,
                                           float4 g, float4 u) {
  return make_float4(activate(kind, c, g.x, u.x), activate(kind, c, g.y, u.y),
                     activate(kind, c, g.z, u.z), activate(kind, c, g.w, u.w));
}

struct quantised {
  std::uint32_t codes = 0;  // of this lane's four columns
  float scale = 1;
};
__device__ __forceinline__ std::uint32_t magnitude(float v) {
  return __float_as_uint(v) & 0x7fffffffu;  // compares like the value, NaN above all
}
__device__ __forceinline__ quantised quantise(float4 v) {
  const std::uint32_t most = __reduce_max_sync(
      ~0u, max(max(magnitude(v.x), magnitude(v.y)), max(magnitude(v.z), magnitude(v.w))));
  // most / 448, correctly rounded wherever the quotient is a normal number (all significands were
  // tried), without the branch of a full division: rows then overlap.
  constexpr float k_reciprocal = 1.0F / 448.0F;
  const float quotient = __uint_as_float(most) * k_reciprocal;
  const float rest = fmaf(-quotient, 448.0F, __uint_as_float(most));
  const float scale = fmaxf(fmaf(rest, k_reciprocal, quotient), 0x1p-126F);
  const float inverse = __frcp_rn(scale);
  const auto pair = [inverse](float low, float high) -> std::uint32_t {
    return __nv_cvt_float2_to_fp8x2(make_float2(low * inverse, high * inverse), __NV_SATFINITE,
                                    __NV_E4M3);
  };
  const std::uint32_t codes = pair(v.x, v.y) | pair(v.z, v.w) << 16;
  const bool finite = most < 0x7f800000u;
  return {.codes = most == 0 ? 0u
                   : finite  ? codes
                             : 0x7f7f7f7fu,
          .scale = most == 0 ? 1.0F
                   : finite  ? scale
                             : __uint_as_float(0x7fc00000u)};
}

}  // namespace moetier::kernels::cuda::ladder
