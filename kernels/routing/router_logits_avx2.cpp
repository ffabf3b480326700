// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include "kernels/routing/router_logits.hpp"
#include "kernels/routing/row_kernels.hpp"

namespace moetier::kernels {
namespace {

constexpr std::uint32_t k_vector = 8;

struct as_f32 {
  using stored = float;
  static __m256 load(const stored* at) { return _mm256_loadu_ps(at); }
};

struct as_bf16 {
  using stored = unsigned short;
  static __m256 load(const stored* at) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
};

// By integers, as F16C is a feature of its own: the magnitude's bits moved to f32's place are the
// value times 2^-112; infinities and NaN get the full exponent back.
struct as_f16 {
  using stored = unsigned short;
  static __m256 load(const stored* at) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(wide, _mm256_set1_epi32(0x8000)), 16);
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7fff));
    const __m256i special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7bff));
    const __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(magnitude, 13)),
                                       _mm256_set1_ps(0x1p112F));
    const __m256i full = _mm256_and_si256(special, _mm256_set1_epi32(0x7f800000));
    return _mm256_or_ps(value, _mm256_castsi256_ps(_mm256_or_si256(sign, full)));
  }
};

float fold(const __m256* lanes) {
  const __m256 by8 =
      _mm256_add_ps(_mm256_add_ps(lanes[0], lanes[2]), _mm256_add_ps(lanes[1], lanes[3]));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}

template <class Type>
void add_lanes(const float* x, const typename Type::stored* a, const typename Type::stored* b,
               __m256* first, __m256* second) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    const __m256 v = _mm256_loadu_ps(x + i * k_vector);
    first[i] = _mm256_fmadd_ps(v, Type::load(a + i * k_vector), first[i]);
    second[i] = _mm256_fmadd_ps(v, Type::load(b + i * k_vector), second[i]);
  }
}

template <class Type>
void dots(const float* x, const void* a_row, const void* b_row, std::uint32_t width, float* out) {
  using stored = typename Type::stored;
  const auto* const a = static_cast<const stored*>(a_row);
  const auto* const b = static_cast<const stored*>(b_row);
  __m256 first[4];
  __m256 second[4];
  for (std::uint32_t i = 0; i < 4; ++i) first[i] = second[i] = _mm256_setzero_ps();
  std::uint32_t at = 0;
  for (; at + k_row_lanes <= width; at += k_row_lanes)
    add_lanes<Type>(x + at, a + at, b + at, first, second);
  if (at < width) {
    float x_rest[k_row_lanes] = {};
    stored a_rest[k_row_lanes] = {};
    stored b_rest[k_row_lanes] = {};
    for (std::uint32_t i = 0; at + i < width; ++i) {
      x_rest[i] = x[at + i];
      a_rest[i] = a[at + i];
      b_rest[i] = b[at + i];
    }
    add_lanes<Type>(x_rest, a_rest, b_rest, first, second);
  }
  out[0] = fold(first);
  out[1] = fold(second);
}

}  // namespace

constinit const router_dots k_router_dots_avx2 = {
    .f32 = dots<as_f32>,
    .bf16 = dots<as_bf16>,
    .f16 = dots<as_f16>,
};

}  // namespace moetier::kernels
