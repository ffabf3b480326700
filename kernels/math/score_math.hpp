#pragma once
// The house's log1p and the router scores built on it and on exp, one value at a time, for baseline
// code. score_math_avx2.hpp runs the same operations and is equal in bits. log1p is within 1 ulp of
// the truth on [0, 1], sigmoid and softplus within 2.5. Never include it in a unit built for a
// wider instruction set. Thread: any.

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/math/host_device.hpp"
#include "kernels/math/house_math.hpp"
#include "kernels/math/log_constants.hpp"

namespace moetier::kernels {

// Requires: 0 <= t <= 1.
MOETIER_HOST_DEVICE inline float house_log1p(float t) noexcept {
  const bool upper = t > 0.5F;
  const float v = upper ? std::fma(t, 0.5F, -0.5F) : t;
  float p = std::fma(k_log_c8, v, k_log_c7);
  p = std::fma(p, v, k_log_c6);
  p = std::fma(p, v, k_log_c5);
  p = std::fma(p, v, k_log_c4);
  p = std::fma(p, v, k_log_c3);
  p = std::fma(p, v, k_log_c2);
  p = std::fma(p, v, k_log_c1);
  p = std::fma(p, v, k_log_c0);
  return (upper ? k_log_ln2 : 0.0F) + std::fma(v * v, p, v);
}

// ln x. Requires: x >= 1, finite.
MOETIER_HOST_DEVICE inline float house_log(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float whole = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127);
  const float fraction = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f800000u) - 1.0F;
  return std::fma(whole, k_log_ln2, house_log1p(fraction));
}

// 1/(1+exp(-x)) for x >= 0, exp(x)/(1+exp(x)) below: digits are kept in both tails.
MOETIER_HOST_DEVICE inline float house_sigmoid(float x) noexcept {
  const float e = house_exp(-std::fabs(x));
  return (x >= 0.0F ? 1.0F : e) / (1.0F + e);
}

// ln(1+exp(x)) as max(x, 0) + log1p(exp(-|x|)).
MOETIER_HOST_DEVICE inline float house_softplus(float x) noexcept {
  return (x > 0.0F ? x : 0.0F) + house_log1p(house_exp(-std::fabs(x)));
}

}  // namespace moetier::kernels
