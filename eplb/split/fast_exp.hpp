#pragma once
// exp for arguments that are not positive, to 2e-6 relative, without a library call: the same bits on
// every machine, and a loop of it becomes vector code (its clamp compares bits, as a comparison of
// floats would keep the compiler from it). Thread: any.

#include <algorithm>
#include <bit>
#include <cstdint>

namespace moetier::eplb {

// Below -80 it stays exp(-80). Requires: x <= 0.
inline float fast_exp(float x) noexcept {
  // Of negative floats the one further from 0 has the larger bits.
  constexpr auto k_sign = static_cast<std::int32_t>(0x80000000U);
  constexpr auto k_least = std::bit_cast<std::int32_t>(-80.0F);
  x = std::bit_cast<float>(std::min(std::bit_cast<std::int32_t>(x) | k_sign, k_least));
  const float t = x * 1.44269504F;        // 2^t
  const float shifted = t + 12582912.0F;  // 1.5 * 2^23: the low bits hold t rounded
  const auto whole = std::bit_cast<std::int32_t>(shifted) - 0x4b400000;
  const float r = t - (shifted - 12582912.0F);  // in [-0.5, 0.5]
  // Taylor of 2^r to the sixth power.
  float y = 1.54035304e-4F;
  y = y * r + 1.33335581e-3F;
  y = y * r + 9.61812911e-3F;
  y = y * r + 5.55041087e-2F;
  y = y * r + 2.40226507e-1F;
  y = y * r + 6.93147181e-1F;
  y = y * r + 1.0F;
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(y) + whole * (1 << 23));
}

}  // namespace moetier::eplb
