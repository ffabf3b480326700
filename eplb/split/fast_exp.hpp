#pragma once
// exp for arguments in [-80, 80] to 2e-6 relative, without a library call: the same bits on every
// machine, and a loop of it becomes vector code. Thread: any.

#include <algorithm>
#include <bit>
#include <cstdint>

namespace moetier::eplb {

inline float fast_exp(float x) noexcept {
  x = std::min(std::max(x, -80.0F), 80.0F);
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
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(y) + (whole << 23));
}

}  // namespace moetier::eplb
