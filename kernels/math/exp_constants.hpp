#pragma once
// Numbers of the house's exp. One sequence of f32 operations serves every device, so keys, weights
// and activations are equal in bits everywhere:
//   x = clamp(x)                        NaN passes
//   t = fma(x, log2e, shift)            the nearest whole number of x/ln 2 lands in t's low bits
//   n = t - shift
//   r = fma(-n, ln2_lo, fma(-n, ln2_hi, x))
//   p = 1 + r + r*r*(c2 + c3*r + c4*r^2 + c5*r^3 + c6*r^4), as six fma from c6 down
//   e = p * 2^(n>>1) * 2^(n - (n>>1))   two factors, so that subnormal results are rounded once
// c2..c6 interpolate (exp(r) - 1 - r) / r^2 at Chebyshev nodes of |r| <= ln(2)/2; the polynomial is
// off by less than 1.1e-8. exp(0) is exactly 1, exp(-inf) is +0. Thread: any.

#include <cstdint>

namespace moetier::kernels {

inline constexpr float k_exp_floor = -105.0F;  // below, the result rounds to +0
inline constexpr float k_exp_ceiling = 89.0F;  // above, it is +inf
inline constexpr float k_exp_log2e = 0x1.715476p+0F;
inline constexpr float k_exp_shift = 0x1.8p+23F;
inline constexpr std::uint32_t k_exp_shift_bits = 0x4b400000u;
inline constexpr float k_exp_ln2_hi = 0x1.62e43p-1F;
inline constexpr float k_exp_ln2_lo = -0x1.05c61p-29F;
inline constexpr float k_exp_c2 = 0.5F;
inline constexpr float k_exp_c3 = 0x1.5554dcp-3F;
inline constexpr float k_exp_c4 = 0x1.555518p-5F;
inline constexpr float k_exp_c5 = 0x1.120be2p-7F;
inline constexpr float k_exp_c6 = 0x1.6d117cp-10F;

}  // namespace moetier::kernels
