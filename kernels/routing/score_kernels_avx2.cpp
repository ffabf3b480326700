// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include "kernels/math/score_math_avx2.hpp"
#include "kernels/routing/row_kernels.hpp"

namespace moetier::kernels {
namespace {

constexpr std::uint32_t k_vector = 8;

// Lanes 0..31 in four vectors, folded 16, 8, 4, 2, 1.
float fold(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 by8 = _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

float exp_sum(const float* row, std::uint32_t padded, float largest) {
  const __m256 top = _mm256_set1_ps(largest);
  __m256 a = _mm256_setzero_ps();
  __m256 b = a;
  __m256 c = a;
  __m256 d = a;
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    a = _mm256_add_ps(a, house_exp_below8(_mm256_sub_ps(_mm256_load_ps(row + e), top)));
    b = _mm256_add_ps(b, house_exp_below8(_mm256_sub_ps(_mm256_load_ps(row + e + 8), top)));
    c = _mm256_add_ps(c, house_exp_below8(_mm256_sub_ps(_mm256_load_ps(row + e + 16), top)));
    d = _mm256_add_ps(d, house_exp_below8(_mm256_sub_ps(_mm256_load_ps(row + e + 24), top)));
  }
  return fold(a, b, c, d);
}

__m256 near_exp8(const float* at, __m256 top, __m256 reach) {
  const __m256 v = _mm256_load_ps(at);
  const __m256 size = _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0F), v), top);
  const __m256 distance = _mm256_div_ps(_mm256_sub_ps(top, v), size);
  const __m256 apart = _mm256_cmp_ps(distance, reach, _CMP_GT_OQ);
  return _mm256_andnot_ps(apart, house_exp_below8(_mm256_sub_ps(v, top)));
}

float near_sum(const float* row, std::uint32_t padded, float largest, float reach) {
  const __m256 top = _mm256_set1_ps(largest);
  const __m256 far = _mm256_set1_ps(reach);
  __m256 lanes[4];
  for (__m256& lane : lanes) lane = _mm256_setzero_ps();
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    for (std::uint32_t i = 0; i < 4; ++i)
      lanes[i] = _mm256_add_ps(lanes[i], near_exp8(row + e + i * k_vector, top, far));
  }
  return fold(lanes[0], lanes[1], lanes[2], lanes[3]);
}

// score + bias, -inf where the logit is -inf.
__m256 key8(__m256 logits, __m256 scores, __m256 bias) {
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  const __m256 excluded = _mm256_cmp_ps(logits, none, _CMP_EQ_OQ);
  return _mm256_blendv_ps(_mm256_add_ps(scores, bias), none, excluded);
}

void sigmoid(const float* row, const float* bias, std::uint32_t padded, float* scores,
             float* keys) {
  for (std::uint32_t e = 0; e < padded; e += k_vector) {
    const __m256 x = _mm256_load_ps(row + e);
    const __m256 s = house_sigmoid8(x);
    _mm256_store_ps(scores + e, s);
    _mm256_store_ps(keys + e, key8(x, s, _mm256_load_ps(bias + e)));
  }
}

void root_softplus(const float* row, const float* bias, std::uint32_t padded, float* scores,
                   float* keys) {
  for (std::uint32_t e = 0; e < padded; e += k_vector) {
    const __m256 x = _mm256_load_ps(row + e);
    const __m256 s = _mm256_sqrt_ps(house_softplus8(x));
    _mm256_store_ps(scores + e, s);
    _mm256_store_ps(keys + e, key8(x, s, _mm256_load_ps(bias + e)));
  }
}

void softmax(const float* row, const float* bias, std::uint32_t padded, float largest, float sum,
             float* scores, float* keys) {
  const __m256 top = _mm256_set1_ps(largest);
  const __m256 whole = _mm256_set1_ps(sum);
  for (std::uint32_t e = 0; e < padded; e += k_vector) {
    const __m256 x = _mm256_load_ps(row + e);
    const __m256 s = _mm256_div_ps(house_exp_below8(_mm256_sub_ps(x, top)), whole);
    _mm256_store_ps(scores + e, s);
    _mm256_store_ps(keys + e, key8(x, s, _mm256_load_ps(bias + e)));
  }
}

void exp_each(float* values, std::uint32_t count, float largest) {
  const __m256 top = _mm256_set1_ps(largest);
  for (std::uint32_t i = 0; i < count; i += k_vector)
    _mm256_storeu_ps(values + i, house_exp_below8(_mm256_sub_ps(_mm256_loadu_ps(values + i), top)));
}

void sigmoid_each(float* values, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; i += k_vector)
    _mm256_storeu_ps(values + i, house_sigmoid8(_mm256_loadu_ps(values + i)));
}

void root_softplus_each(float* values, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; i += k_vector)
    _mm256_storeu_ps(values + i, _mm256_sqrt_ps(house_softplus8(_mm256_loadu_ps(values + i))));
}

}  // namespace

constinit const score_kernels k_score_kernels_avx2 = {
    .exp_sum = exp_sum,
    .near_sum = near_sum,
    .sigmoid = sigmoid,
    .root_softplus = root_softplus,
    .softmax = softmax,
    .exp_each = exp_each,
    .sigmoid_each = sigmoid_each,
    .root_softplus_each = root_softplus_each,
};

}  // namespace moetier::kernels
