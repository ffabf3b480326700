#pragma once
// Eight f32 as a value of activation_math.hpp. Only units built for AVX2 and FMA include it; the
// type has internal linkage, so each unit's instantiations stay its own. Thread: any.

#include <immintrin.h>

#include "kernels/math/house_math_avx2.hpp"

namespace moetier::kernels {
namespace {

struct lanes {
  __m256 v;

  static lanes of(float x) noexcept { return {_mm256_set1_ps(x)}; }
  static lanes at(const float* from) noexcept { return {_mm256_loadu_ps(from)}; }
  friend lanes operator+(lanes a, lanes b) noexcept { return {_mm256_add_ps(a.v, b.v)}; }
  friend lanes operator-(lanes a, lanes b) noexcept { return {_mm256_sub_ps(a.v, b.v)}; }
  friend lanes operator*(lanes a, lanes b) noexcept { return {_mm256_mul_ps(a.v, b.v)}; }
  friend lanes operator/(lanes a, lanes b) noexcept { return {_mm256_div_ps(a.v, b.v)}; }
  friend lanes fused(lanes a, lanes b, lanes c) noexcept {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  }
  friend lanes exp_of(lanes x) noexcept { return {house_exp8(x.v)}; }
  friend lanes magnitude(lanes x) noexcept {
    return {_mm256_andnot_ps(_mm256_set1_ps(-0.0F), x.v)};
  }
  friend lanes negated(lanes x) noexcept { return {_mm256_xor_ps(x.v, _mm256_set1_ps(-0.0F))}; }
  friend lanes larger(lanes a, lanes b) noexcept { return {_mm256_max_ps(a.v, b.v)}; }
  friend lanes smaller(lanes a, lanes b) noexcept { return {_mm256_min_ps(a.v, b.v)}; }
  friend lanes below(lanes x, lanes limit, lanes a, lanes b) noexcept {
    return {_mm256_blendv_ps(b.v, a.v, _mm256_cmp_ps(x.v, limit.v, _CMP_LT_OQ))};
  }
  friend lanes by_sign(lanes x, lanes a, lanes b) noexcept {
    return {_mm256_blendv_ps(b.v, a.v, x.v)};
  }
  friend lanes signed_as(lanes x, lanes sign) noexcept {
    const __m256 bit = _mm256_set1_ps(-0.0F);
    return {_mm256_or_ps(_mm256_andnot_ps(bit, x.v), _mm256_and_ps(bit, sign.v))};
  }
};

}  // namespace
}  // namespace moetier::kernels
