#pragma once
// Numbers of the house's normal distribution function and tanh, both built on the house's exp.
//   cdf(x): a = |x|, t = 1 / (1 + a / (2 sqrt 2)), q = (t / 2) * exp(-x^2 / 2) * Q(t),
//           x < 0: q, else 1 - q. Q interpolates erfc(z) * exp(z^2) / t with z = a / sqrt 2, by a
//           minimax fit over z <= 10.5, relative error below 4e-9.
//   tanh(x): |x| < 0.625: x + x^3 * T(x^2), T a minimax fit, relative error below 5e-9;
//           else 1 - 2 / (exp(2 |x|) + 1) with the sign of x.
// Thread: any.

namespace moetier::kernels {

inline constexpr float k_half_root_half = 0x1.6a09e6p-2F;  // 1 / (2 sqrt 2)
// Q and T from the power 0 up: single numbers, because an array would be a symbol that units share.
inline constexpr float k_cdf_q0 = 0x1.20dbfcp-2F;
inline constexpr float k_cdf_q1 = 0x1.2102b0p-2F;
inline constexpr float k_cdf_q2 = 0x1.f672a6p-3F;
inline constexpr float k_cdf_q3 = 0x1.7a4474p-3F;
inline constexpr float k_cdf_q4 = 0x1.dbdd32p-5F;
inline constexpr float k_cdf_q5 = 0x1.c781ecp-6F;
inline constexpr float k_cdf_q6 = -0x1.4480acp-7F;
inline constexpr float k_cdf_q7 = -0x1.358550p-2F;
inline constexpr float k_cdf_q8 = 0x1.8f4078p-2F;
inline constexpr float k_cdf_q9 = -0x1.8deb26p-3F;
inline constexpr float k_cdf_q10 = 0x1.298386p-5F;

inline constexpr float k_tanh_split = 0.625F;
inline constexpr float k_tanh_t0 = -0x1.555530p-2F;
inline constexpr float k_tanh_t1 = 0x1.11068ep-3F;
inline constexpr float k_tanh_t2 = -0x1.b8265cp-5F;
inline constexpr float k_tanh_t3 = 0x1.518b16p-6F;
inline constexpr float k_tanh_t4 = -0x1.72fc48p-8F;

inline constexpr float k_root_two_over_pi = 0x1.988454p-1F;
inline constexpr float k_gelu_cubic = 0.044715F;

}  // namespace moetier::kernels
