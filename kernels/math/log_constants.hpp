#pragma once
// Numbers of the house's log1p on [0, 1]. One sequence of f32 operations serves every device:
//   v = t > 1/2 ? fma(t, 1/2, -1/2) : t      1 + t = 2 (1 + v) or 1 + v, exactly
//   p = c0 + c1*v + ... + c8*v^8, as eight fma from c8 down
//   l = fma(v*v, p, v)
//   log1p(t) = (t > 1/2 ? ln2 : 0) + l
// c0..c8 interpolate (log1p(v) - v) / v^2 at the Chebyshev nodes of [-1/4, 1/2]; the result is off
// by less than 1.2e-8 of itself before rounding. log1p(0) is +0, log1p of a subnormal is itself.
// Thread: any.

namespace moetier::kernels {

inline constexpr float k_log_ln2 = 0x1.62e430p-1F;
inline constexpr float k_log_c0 = -0.5F;
inline constexpr float k_log_c1 = 0x1.555580p-2F;
inline constexpr float k_log_c2 = -0x1.000068p-2F;
inline constexpr float k_log_c3 = 0x1.997802p-3F;
inline constexpr float k_log_c4 = -0x1.54f19ap-3F;
inline constexpr float k_log_c5 = 0x1.27b318p-3F;
inline constexpr float k_log_c6 = -0x1.0cc1acp-3F;
inline constexpr float k_log_c7 = 0x1.b339ccp-4F;
inline constexpr float k_log_c8 = -0x1.842826p-5F;

}  // namespace moetier::kernels
