#pragma once
// Eight values at a time of score_math.hpp: the same operations in the same order, equal in bits.
// Only units built for AVX2 and FMA include it. Thread: any.

#include <immintrin.h>

#include "kernels/math/house_math_avx2.hpp"
#include "kernels/math/log_constants.hpp"

namespace moetier::kernels {

inline __m256 house_log1p8(__m256 t) noexcept {
  const __m256 half = _mm256_set1_ps(0.5F);
  const __m256 upper = _mm256_cmp_ps(t, half, _CMP_GT_OQ);
  const __m256 v = _mm256_blendv_ps(t, _mm256_fmsub_ps(t, half, half), upper);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(k_log_c8), v, _mm256_set1_ps(k_log_c7));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c6));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c5));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c4));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c3));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c2));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c1));
  p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(k_log_c0));
  const __m256 base = _mm256_and_ps(upper, _mm256_set1_ps(k_log_ln2));
  return _mm256_add_ps(base, _mm256_fmadd_ps(_mm256_mul_ps(v, v), p, v));
}

// house_exp8 for x <= 0, in fewer operations: what rounds to 0 is masked, which also keeps excluded
// experts and padding from the processor's slow path for subnormal results; p * 2^(n+64) is exact,
// so one rounding happens in the last product, as there.
inline __m256 house_exp_below8(__m256 x) noexcept {
  constexpr int k_half = 64;
  const __m256 gone = _mm256_cmp_ps(x, _mm256_set1_ps(k_exp_floor), _CMP_LT_OQ);
  const exp_parts8 parts = house_exp_parts8(_mm256_andnot_ps(gone, x));
  const __m256i biased =
      _mm256_add_epi32(_mm256_castps_si256(parts.shifted),
                       _mm256_set1_epi32(127 + k_half - static_cast<int>(k_exp_shift_bits)));
  const __m256 scaled =
      _mm256_mul_ps(parts.power, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23)));
  return _mm256_andnot_ps(gone, _mm256_mul_ps(scaled, _mm256_set1_ps(0x1p-64F)));
}

// exp(-|x|), which every score needs.
inline __m256 house_exp_fall8(__m256 x) noexcept {
  return house_exp_below8(_mm256_or_ps(x, _mm256_set1_ps(-0.0F)));
}

inline __m256 house_sigmoid8(__m256 x) noexcept {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 e = house_exp_fall8(x);
  const __m256 positive = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GE_OQ);
  return _mm256_div_ps(_mm256_blendv_ps(e, one, positive), _mm256_add_ps(one, e));
}

inline __m256 house_softplus8(__m256 x) noexcept {
  const __m256 above = _mm256_max_ps(x, _mm256_setzero_ps());
  return _mm256_add_ps(above, house_log1p8(house_exp_fall8(x)));
}

}  // namespace moetier::kernels
