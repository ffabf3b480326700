// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include "kernels/math/house_math_avx2.hpp"
#include "kernels/routing/row_kernels.hpp"

namespace moetier::kernels {
namespace {

constexpr std::uint32_t k_vector = 8;

std::uint32_t find_bad(const float* row, std::uint32_t padded) {
  const __m256 infinity = _mm256_set1_ps(__builtin_inff());
  for (std::uint32_t e = 0; e < padded; e += k_vector) {
    const __m256 bad = _mm256_cmp_ps(_mm256_load_ps(row + e), infinity, _CMP_NLT_UQ);
    const auto mask = static_cast<unsigned>(_mm256_movemask_ps(bad));
    if (mask != 0) return e + static_cast<std::uint32_t>(__builtin_ctz(mask));
  }
  return padded;
}

float cut(const float* row, std::uint32_t padded, std::uint32_t count) {
  if (count > k_row_lanes) return -__builtin_inff();
  __m256 lanes[k_row_lanes / k_vector];
  for (std::uint32_t i = 0; i < 4; ++i) lanes[i] = _mm256_load_ps(row + i * k_vector);
  for (std::uint32_t e = k_row_lanes; e < padded; e += k_row_lanes) {
    for (std::uint32_t i = 0; i < 4; ++i)
      lanes[i] = _mm256_max_ps(lanes[i], _mm256_load_ps(row + e + i * k_vector));
  }
  alignas(32) float maxima[k_row_lanes];
  for (std::uint32_t i = 0; i < 4; ++i) _mm256_store_ps(maxima + i * k_vector, lanes[i]);
  // The count-th largest is the least of those that fewer than `count` maxima exceed.
  float least = __builtin_inff();
  for (const float value : maxima) {
    const __m256 v = _mm256_set1_ps(value);
    __m256i above = _mm256_setzero_si256();  // minus the number of greater maxima, per lane
    for (std::uint32_t i = 0; i < 4; ++i)
      above = _mm256_add_epi32(above, _mm256_castps_si256(_mm256_cmp_ps(lanes[i], v, _CMP_GT_OQ)));
    const __m128i by4 =
        _mm_add_epi32(_mm256_castsi256_si128(above), _mm256_extracti128_si256(above, 1));
    const __m128i by2 = _mm_add_epi32(by4, _mm_shuffle_epi32(by4, 0x4e));
    const __m128i by1 = _mm_add_epi32(by2, _mm_shuffle_epi32(by2, 0xb1));
    const auto exceeding = static_cast<std::uint32_t>(-_mm_cvtsi128_si32(by1));
    const float kept = exceeding < count ? value : __builtin_inff();
    least = kept < least ? kept : least;
  }
  return least;
}

std::uint32_t collect(const float* row, std::uint32_t padded, float cut, std::uint16_t* ids) {
  const __m256 least = _mm256_set1_ps(cut > -__FLT_MAX__ ? cut : -__FLT_MAX__);
  std::uint32_t count = 0;
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    unsigned mask = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const __m256 values = _mm256_load_ps(row + e + i * k_vector);
      const int bits = _mm256_movemask_ps(_mm256_cmp_ps(values, least, _CMP_GE_OQ));
      mask |= static_cast<unsigned>(bits) << (i * k_vector);
    }
    for (; mask != 0; mask &= mask - 1)
      ids[count++] = static_cast<std::uint16_t>(e + static_cast<unsigned>(__builtin_ctz(mask)));
  }
  return count;
}

float exp_sum(const float* row, std::uint32_t padded, float largest) {
  const __m256 top = _mm256_set1_ps(largest);
  __m256 a = _mm256_setzero_ps();
  __m256 b = a;
  __m256 c = a;
  __m256 d = a;
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    a = _mm256_add_ps(a, house_exp8(_mm256_sub_ps(_mm256_load_ps(row + e), top)));
    b = _mm256_add_ps(b, house_exp8(_mm256_sub_ps(_mm256_load_ps(row + e + 8), top)));
    c = _mm256_add_ps(c, house_exp8(_mm256_sub_ps(_mm256_load_ps(row + e + 16), top)));
    d = _mm256_add_ps(d, house_exp8(_mm256_sub_ps(_mm256_load_ps(row + e + 24), top)));
  }
  const __m256 by8 = _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

void exp_each(float* values, std::uint32_t count, float largest) {
  const __m256 top = _mm256_set1_ps(largest);
  for (std::uint32_t i = 0; i < count; i += k_vector)
    _mm256_storeu_ps(values + i, house_exp8(_mm256_sub_ps(_mm256_loadu_ps(values + i), top)));
}

}  // namespace

constinit const row_kernels k_row_kernels_avx2 = {
    .find_bad = find_bad,
    .cut = cut,
    .collect = collect,
    .exp_sum = exp_sum,
    .exp_each = exp_each,
};

}  // namespace moetier::kernels
