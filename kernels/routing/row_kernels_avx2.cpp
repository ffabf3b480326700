// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include "kernels/routing/row_kernels.hpp"

#include <immintrin.h>

namespace moetier::kernels {
namespace {

constexpr std::uint32_t k_vector = 8;

unsigned mask_of(__m256 lanes) { return static_cast<unsigned>(_mm256_movemask_ps(lanes)); }

std::uint32_t find_bad(const float* row, std::uint32_t padded) {
  const __m256 infinity = _mm256_set1_ps(__builtin_inff());
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    __m256 bad[4];
    for (std::uint32_t i = 0; i < 4; ++i)
      bad[i] = _mm256_cmp_ps(_mm256_load_ps(row + e + i * k_vector), infinity, _CMP_NLT_UQ);
    const __m256 any = _mm256_or_ps(_mm256_or_ps(bad[0], bad[1]), _mm256_or_ps(bad[2], bad[3]));
    if (mask_of(any) == 0) continue;
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (const unsigned mask = mask_of(bad[i]); mask != 0)
        return e + i * k_vector + static_cast<std::uint32_t>(__builtin_ctz(mask));
    }
  }
  return padded;
}

float horizontal_max(__m256 v) {
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

// The 32 lanes' maxima in four vectors.
void lane_maxima(const float* row, std::uint32_t padded, __m256* lanes) {
  for (std::uint32_t i = 0; i < 4; ++i) lanes[i] = _mm256_load_ps(row + i * k_vector);
  for (std::uint32_t e = k_row_lanes; e < padded; e += k_row_lanes) {
    for (std::uint32_t i = 0; i < 4; ++i)
      lanes[i] = _mm256_max_ps(lanes[i], _mm256_load_ps(row + e + i * k_vector));
  }
}

float largest(const float* row, std::uint32_t padded) {
  __m256 lanes[4];
  lane_maxima(row, padded, lanes);
  return horizontal_max(
      _mm256_max_ps(_mm256_max_ps(lanes[0], lanes[1]), _mm256_max_ps(lanes[2], lanes[3])));
}

void order(__m256& high, __m256& low) {
  const __m256 more = _mm256_max_ps(high, low);
  low = _mm256_min_ps(high, low);
  high = more;
}

void order(__m128& high, __m128& low) {
  const __m128 more = _mm_max_ps(high, low);
  low = _mm_min_ps(high, low);
  high = more;
}

// The place of value number `at` of `all`: how many are above it, or equal and before it.
template <std::uint32_t Vectors>
std::uint32_t place_of(const __m256* all, float value, std::uint32_t at) {
  const __m256 v = _mm256_set1_ps(value);
  unsigned above = 0;
  unsigned equal = 0;
  for (std::uint32_t i = 0; i < Vectors; ++i) {
    above |= mask_of(_mm256_cmp_ps(all[i], v, _CMP_GT_OQ)) << (i * k_vector);
    equal |= mask_of(_mm256_cmp_ps(all[i], v, _CMP_EQ_OQ)) << (i * k_vector);
  }
  const unsigned before = equal & ((1U << at) - 1U);
  return static_cast<std::uint32_t>(__builtin_popcount(above) + __builtin_popcount(before));
}

// The count-th largest of the values of `all`.
template <std::uint32_t Vectors>
float least_of(const __m256* all, std::uint32_t count) {
  float values[Vectors * k_vector];
  for (std::uint32_t i = 0; i < Vectors; ++i) _mm256_storeu_ps(values + i * k_vector, all[i]);
  float least = values[0];
  for (std::uint32_t i = 0; i < Vectors * k_vector; ++i)
    least = place_of<Vectors>(all, values[i], i) == count - 1 ? values[i] : least;
  return least;
}

// The maxima are sorted down the four vectors, then the vectors are folded in halves, the larger
// half of each pair of columns staying: 32, 16, 8 values are left, all reached by that many.
float cut(const float* row, std::uint32_t padded, std::uint32_t count) {
  if (count > k_row_lanes) return -__builtin_inff();
  __m256 v[4];
  lane_maxima(row, padded, v);
  if (count > 16) return least_of<4>(v, count);
  order(v[0], v[1]);
  order(v[2], v[3]);
  order(v[0], v[2]);
  order(v[1], v[3]);
  order(v[1], v[2]);
  __m128 w[4];  // a bitonic column of the larger four of eight
  for (std::uint32_t i = 0; i < 4; ++i)
    w[i] = _mm_max_ps(_mm256_castps256_ps128(v[i]), _mm256_extractf128_ps(v[3 - i], 1));
  if (count > 8) {
    const __m256 pairs[2] = {_mm256_set_m128(w[1], w[0]), _mm256_set_m128(w[3], w[2])};
    return least_of<2>(pairs, count);
  }
  order(w[0], w[2]);
  order(w[1], w[3]);
  order(w[0], w[1]);
  order(w[2], w[3]);
  __m128 left = _mm_max_ps(w[0], _mm_movehl_ps(w[3], w[3]));
  for (std::uint32_t i = 1; i < 4; ++i)
    left = _mm_min_ps(left, _mm_max_ps(w[i], _mm_movehl_ps(w[3 - i], w[3 - i])));
  return _mm_cvtss_f32(_mm_min_ss(left, _mm_movehdup_ps(left)));
}

std::uint32_t collect(const float* row, std::uint32_t padded, float cut, std::uint16_t* ids) {
  const __m256 least = _mm256_set1_ps(cut > -__FLT_MAX__ ? cut : -__FLT_MAX__);
  std::uint32_t count = 0;
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    unsigned mask = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const __m256 values = _mm256_load_ps(row + e + i * k_vector);
      mask |= mask_of(_mm256_cmp_ps(values, least, _CMP_GE_OQ)) << (i * k_vector);
    }
    for (; mask != 0; mask &= mask - 1)
      ids[count++] = static_cast<std::uint16_t>(e + static_cast<unsigned>(__builtin_ctz(mask)));
  }
  return count;
}

template <std::uint32_t Vectors>
void rank(const float* values, const std::uint16_t* candidates, std::uint32_t count,
          std::uint32_t most, std::uint16_t* ids) {
  __m256 all[Vectors];
  for (std::uint32_t i = 0; i < Vectors; ++i) all[i] = _mm256_load_ps(values + i * k_vector);
  for (std::uint32_t c = 0; c < count; ++c) {
    const std::uint32_t place = place_of<Vectors>(all, values[c], c);
    ids[place < most ? place : k_select_most] = candidates[c];
  }
}

std::uint32_t select(const float* row, std::uint32_t padded, std::uint32_t most,
                     std::uint16_t* ids) {
  const float bound = cut(row, padded, most);
  const __m256 least = _mm256_set1_ps(bound > -__FLT_MAX__ ? bound : -__FLT_MAX__);
  alignas(32) float values[k_select_candidates + k_row_lanes];
  std::uint16_t candidates[k_select_candidates + k_row_lanes];
  std::uint32_t count = 0;
  for (std::uint32_t e = 0; e < padded; e += k_row_lanes) {
    unsigned mask = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const __m256 v = _mm256_load_ps(row + e + i * k_vector);
      mask |= mask_of(_mm256_cmp_ps(v, least, _CMP_GE_OQ)) << (i * k_vector);
    }
    for (; mask != 0; mask &= mask - 1) {
      const std::uint32_t id = e + static_cast<unsigned>(__builtin_ctz(mask));
      candidates[count] = static_cast<std::uint16_t>(id);
      values[count++] = row[id];
    }
    if (count > k_select_candidates) return k_not_selected;
  }
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  for (std::uint32_t i = 0; i < 4; ++i) _mm256_storeu_ps(values + count + i * k_vector, none);
  if (count <= 16)
    rank<2>(values, candidates, count, most, ids);
  else
    rank<4>(values, candidates, count, most, ids);
  return count < most ? count : most;
}

void group_pairs(const float* keys, std::uint32_t width, std::uint32_t groups, float* sums) {
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  for (std::uint32_t g = 0; g < groups; ++g, keys += width) {
    __m256 first = none;
    __m256 second = none;
    std::uint32_t i = 0;
    for (; i + k_vector <= width; i += k_vector) {
      const __m256 v = _mm256_loadu_ps(keys + i);
      second = _mm256_max_ps(second, _mm256_min_ps(first, v));
      first = _mm256_max_ps(first, v);
    }
    if (i < width) {
      alignas(32) float rest[k_vector];
      _mm256_store_ps(rest, none);
      for (std::uint32_t j = 0; i + j < width; ++j) rest[j] = keys[i + j];
      const __m256 v = _mm256_load_ps(rest);
      second = _mm256_max_ps(second, _mm256_min_ps(first, v));
      first = _mm256_max_ps(first, v);
    }
    __m128 a = _mm256_castps256_ps128(first);
    __m128 b = _mm256_extractf128_ps(first, 1);
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(second), _mm256_extractf128_ps(second, 1));
    s = _mm_max_ps(s, _mm_min_ps(a, b));
    a = _mm_max_ps(a, b);
    b = _mm_movehl_ps(a, a);
    s = _mm_max_ps(_mm_max_ps(s, _mm_movehl_ps(s, s)), _mm_min_ps(a, b));
    a = _mm_max_ps(a, b);
    b = _mm_movehdup_ps(a);
    s = _mm_max_ss(_mm_max_ss(s, _mm_movehdup_ps(s)), _mm_min_ss(a, b));
    a = _mm_max_ss(a, b);
    const float largest_key = _mm_cvtss_f32(a);
    const float next = _mm_cvtss_f32(s);
    sums[g] = next == -__builtin_inff() ? largest_key : largest_key + next;
  }
}

void drop_group(float* keys, std::uint32_t width) {
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  std::uint32_t i = 0;
  for (; i + k_vector <= width; i += k_vector) _mm256_storeu_ps(keys + i, none);
  for (; i < width; ++i) keys[i] = -__builtin_inff();
}

template <std::uint32_t Vectors>
void drop_by(const float* sums, std::uint32_t groups, std::uint32_t kept, std::uint32_t width,
             float* keys) {
  __m256 all[Vectors];
  for (std::uint32_t i = 0; i < Vectors; ++i) all[i] = _mm256_load_ps(sums + i * k_vector);
  for (std::uint32_t g = 0; g < groups; ++g) {
    if (place_of<Vectors>(all, sums[g], g) >= kept)
      drop_group(keys + std::size_t{g} * width, width);
  }
}

void drop_groups(const float* sums, std::uint32_t groups, std::uint32_t kept, std::uint32_t width,
                 float* keys) {
  if (groups <= k_vector)
    drop_by<1>(sums, groups, kept, width, keys);
  else
    drop_by<4>(sums, groups, kept, width, keys);
}

}  // namespace

constinit const row_kernels k_row_kernels_avx2 = {
    .find_bad = find_bad,
    .largest = largest,
    .cut = cut,
    .collect = collect,
    .select = select,
    .group_pairs = group_pairs,
    .drop_groups = drop_groups,
    .scores = &k_score_kernels_avx2,
};

}  // namespace moetier::kernels
