#pragma once
// Eight values at a time of house_math.hpp: the same operations in the same order, equal in bits.
// Only units built for AVX2 and FMA include it. Thread: any.

#include <immintrin.h>

#include "kernels/math/exp_constants.hpp"

namespace moetier::kernels {

// x = n ln 2 + r with a whole n: `shifted` holds n in its low bits, `power` is exp(r).
struct exp_parts8 {
  __m256 shifted;
  __m256 power;
};

inline exp_parts8 house_exp_parts8(__m256 x) noexcept {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 shift = _mm256_set1_ps(k_exp_shift);
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(k_exp_log2e), shift);
  const __m256 n = _mm256_sub_ps(t, shift);
  const __m256 coarse = _mm256_fnmadd_ps(n, _mm256_set1_ps(k_exp_ln2_hi), x);
  const __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(k_exp_ln2_lo), coarse);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(k_exp_c6), r, _mm256_set1_ps(k_exp_c5));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(k_exp_c4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(k_exp_c3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(k_exp_c2));
  p = _mm256_fmadd_ps(p, r, one);
  return {.shifted = t, .power = _mm256_fmadd_ps(p, r, one)};
}

inline __m256 house_exp8(__m256 x) noexcept {
  x = _mm256_max_ps(_mm256_set1_ps(k_exp_floor), x);  // a NaN in the second operand passes
  x = _mm256_min_ps(_mm256_set1_ps(k_exp_ceiling), x);
  const exp_parts8 parts = house_exp_parts8(x);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i whole = _mm256_sub_epi32(_mm256_castps_si256(parts.shifted),
                                         _mm256_set1_epi32(static_cast<int>(k_exp_shift_bits)));
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i rest = _mm256_sub_epi32(whole, half);
  const __m256i scale_a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i scale_b = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(parts.power, _mm256_castsi256_ps(scale_a)),
                       _mm256_castsi256_ps(scale_b));
}

inline __m256 house_silu8(__m256 g) noexcept {
  const __m256 e = house_exp8(_mm256_xor_ps(g, _mm256_set1_ps(-0.0F)));
  return _mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
}

inline __m256 house_swiglu8(__m256 gate, __m256 up) noexcept {
  return _mm256_mul_ps(house_silu8(gate), up);
}

}  // namespace moetier::kernels
