#pragma once
// The house's exp and the activations built on it, one value at a time, for baseline code. The
// AVX2 form in house_math_avx2.hpp runs the same operations and is equal in bits. exp is within 1
// ulp of the truth, silu within 2.3. Never include it in a unit built for a wider instruction set.
// Thread: any.

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/math/exp_constants.hpp"
#include "kernels/math/host_device.hpp"

namespace moetier::kernels {

MOETIER_HOST_DEVICE inline float house_exp(float x) noexcept {
  x = k_exp_floor > x ? k_exp_floor : x;
  x = k_exp_ceiling < x ? k_exp_ceiling : x;
  const float t = std::fma(x, k_exp_log2e, k_exp_shift);
  const float n = t - k_exp_shift;
  const float r = std::fma(-n, k_exp_ln2_lo, std::fma(-n, k_exp_ln2_hi, x));
  float p = std::fma(k_exp_c6, r, k_exp_c5);
  p = std::fma(p, r, k_exp_c4);
  p = std::fma(p, r, k_exp_c3);
  p = std::fma(p, r, k_exp_c2);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  const std::uint32_t whole = std::bit_cast<std::uint32_t>(t) - k_exp_shift_bits;
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) >> 1);
  const float scale_a = std::bit_cast<float>((half + 127u) << 23);
  const float scale_b = std::bit_cast<float>((whole - half + 127u) << 23);
  return p * scale_a * scale_b;
}

// g * sigmoid(g) in three roundings. Below -88.8 exp(-g) is +inf and the result -0, where the truth
// is below 2.7e-37.
MOETIER_HOST_DEVICE inline float house_silu(float g) noexcept { return g / (1.0F + house_exp(-g)); }

MOETIER_HOST_DEVICE inline float house_swiglu(float gate, float up) noexcept {
  return house_silu(gate) * up;
}

}  // namespace moetier::kernels
