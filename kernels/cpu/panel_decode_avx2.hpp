#pragma once
// Codes and scales of quantised panels (panel_strip.hpp) as f32 vectors. Only units built for AVX2,
// FMA and F16C include it; everything has internal linkage.
//
// Eight-bit codes become f16 by a shift and a mask, which leaves value / 256 (exact, subnormal
// codes too), and f32 by a conversion that reads memory: from a register it takes a port that is
// busier. Four-bit codes look up the upper two bytes of the f32 that they mean by shuffles. Then
// one product with the scale, so each weight is rounded once, as the format says.
// Thread: any.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/limits.hpp"

namespace moetier::kernels {
namespace {

struct pair_of_lanes {
  __m256 low;
  __m256 high;
};

[[gnu::always_inline]] inline void store(const pair_of_lanes& w, float* out) {
  _mm256_store_ps(out, w.low);
  _mm256_store_ps(out + 8, w.high);
}

[[gnu::always_inline]] inline pair_of_lanes times(const pair_of_lanes& a, const pair_of_lanes& b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

[[gnu::always_inline]] inline pair_of_lanes both(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

// 16 f16 in memory -> 16 f32.
[[gnu::always_inline]] inline pair_of_lanes converted(const __m256i& halves) {
  const auto* at = reinterpret_cast<const __m128i*>(&halves);
  pair_of_lanes w;
  asm("vcvtph2ps %1, %0" : "=x"(w.low) : "m"(at[0]));
  asm("vcvtph2ps %1, %0" : "=x"(w.high) : "m"(at[1]));
  return w;
}

// 16 words whose upper byte is an E4M3 code -> f16 of value / 256.
[[gnu::always_inline]] inline __m256i f16_of_upper(__m256i words) {
  return _mm256_and_si256(_mm256_srai_epi16(words, 1),
                          _mm256_set1_epi16(static_cast<short>(0xbf80)));
}

// Moves the lower byte of each word to the upper one: a shuffle, because shifts share the fma
// ports.
alignas(32) constexpr std::uint8_t k_raise_bytes[32] = {
    0x80, 0, 0x80, 2, 0x80, 4, 0x80, 6, 0x80, 8, 0x80, 10, 0x80, 12, 0x80, 14,
    0x80, 0, 0x80, 2, 0x80, 4, 0x80, 6, 0x80, 8, 0x80, 10, 0x80, 12, 0x80, 14};

[[gnu::always_inline]] inline __m256i raised(__m256i words) {
  return _mm256_shuffle_epi8(words,
                             _mm256_load_si256(reinterpret_cast<const __m256i*>(k_raise_bytes)));
}

// Words of two steps of K: even step in the lower byte. A product with the scale is rounded once
// only if the scale carries the factor 256, which must not overflow: Large takes two products.
template <bool Large>
struct e4m3_codes {
  static constexpr std::size_t k_step_bytes = 16;
  static constexpr unsigned k_steps = 2;  // decoded at a time

  // What decode() multiplies with.
  [[gnu::always_inline]] static pair_of_lanes factor(const pair_of_lanes& scale) {
    return Large ? scale : times(scale, both(256.0F));
  }
  template <class Finish>
  [[gnu::always_inline]] static void decode(const std::byte* at, const pair_of_lanes& factor,
                                            Finish&& finish, float* out) {
    const __m256i words = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
    const auto weigh = [&](const pair_of_lanes& w) {
      return finish(times(Large ? times(w, both(256.0F)) : w, factor));
    };
    store(weigh(converted(f16_of_upper(raised(words)))), out);
    store(weigh(converted(f16_of_upper(words))), out + k_panel_columns);
  }
};

// The upper two bytes of the f32 that the sixteen codes mean, high and low, for both 128-bit lanes.
struct e2m1_table {
  alignas(16) static constexpr std::uint8_t k_high[16] = {0x00, 0x3f, 0x3f, 0x3f, 0x40, 0x40,
                                                          0x40, 0x40, 0x80, 0xbf, 0xbf, 0xbf,
                                                          0xc0, 0xc0, 0xc0, 0xc0};
  alignas(16) static constexpr std::uint8_t k_low[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x40,
                                                         0x80, 0xc0, 0x00, 0x00, 0x80, 0xc0,
                                                         0x00, 0x40, 0x80, 0xc0};
};
struct int4_table {
  alignas(16) static constexpr std::uint8_t k_high[16] = {0xc1, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0,
                                                          0xc0, 0xbf, 0x00, 0x3f, 0x40, 0x40,
                                                          0x40, 0x40, 0x40, 0x40};
  alignas(16) static constexpr std::uint8_t k_low[16] = {0x00, 0xe0, 0xc0, 0xa0, 0x80, 0x40,
                                                         0x00, 0x80, 0x00, 0x80, 0x00, 0x40,
                                                         0x80, 0xa0, 0xc0, 0xe0};
};

[[gnu::always_inline]] inline __m256i table_of(const std::uint8_t* bytes) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// Four steps of eight columns, as 32 codes -> f32.
struct quad_of_lanes {
  __m256 step[4];
};

[[gnu::always_inline]] inline quad_of_lanes looked_up(__m256i codes, __m256i high, __m256i low) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i upper = _mm256_shuffle_epi8(high, codes);
  const __m256i lower = _mm256_shuffle_epi8(low, codes);
  const __m256i first = _mm256_unpacklo_epi8(lower, upper);   // steps 0 and 1
  const __m256i second = _mm256_unpackhi_epi8(lower, upper);  // steps 2 and 3
  return {{_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, first)),
           _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, first)),
           _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, second)),
           _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, second))}};
}

// Quads of steps of K: each 128-bit lane holds four columns of four steps, so that widening within
// lanes leaves a step's eight columns in order. Groups are whole quads.
template <class Table>
struct nibble_codes {
  static constexpr std::size_t k_step_bytes = 8;
  static constexpr unsigned k_steps = 4;

  [[gnu::always_inline]] static pair_of_lanes factor(const pair_of_lanes& scale) { return scale; }
  template <class Finish>
  [[gnu::always_inline]] static void decode(const std::byte* at, const pair_of_lanes& factor,
                                            Finish&& finish, float* out) {
    const __m256i high = table_of(Table::k_high);
    const __m256i low = table_of(Table::k_low);
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
    const quad_of_lanes lows = looked_up(_mm256_and_si256(codes, mask), high, low);
    const quad_of_lanes highs =
        looked_up(_mm256_and_si256(_mm256_srli_epi16(codes, 4), mask), high, low);
#pragma GCC unroll 4
    for (unsigned u = 0; u < 4; ++u)
      store(finish(times({lows.step[u], highs.step[u]}, factor)), out + u * k_panel_columns);
  }
};

// Scales of group g as two vectors.
struct f32_scales {
  [[gnu::always_inline]] static pair_of_lanes at(const std::byte* scales, std::size_t g) {
    const float* from = reinterpret_cast<const float*>(scales) + g * k_panel_columns;
    return {_mm256_load_ps(from), _mm256_load_ps(from + 8)};
  }
};

struct bf16_scales {
  [[gnu::always_inline]] static pair_of_lanes at(const std::byte* scales, std::size_t g) {
    const auto* from = reinterpret_cast<const __m128i*>(scales + g * k_panel_columns * 2);
    return {half(_mm_load_si128(from)), half(_mm_load_si128(from + 1))};
  }
  [[gnu::always_inline]] static __m256 half(__m128i words) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }
};

// Code 0 is 2^-127, whose f32 has no exponent field.
struct ue8m0_scales {
  [[gnu::always_inline]] static pair_of_lanes at(const std::byte* scales, std::size_t g) {
    const std::byte* from = scales + g * k_panel_columns;
    return {half(from), half(from + 8)};
  }
  [[gnu::always_inline]] static __m256 half(const std::byte* from) {
    const __m256i codes =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    const __m256i smallest = _mm256_and_si256(_mm256_cmpeq_epi32(codes, _mm256_setzero_si256()),
                                              _mm256_set1_epi32(0x00400000));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(codes, 23), smallest));
  }
};

struct e4m3_scales {
  [[gnu::always_inline]] static pair_of_lanes at(const std::byte* scales, std::size_t g) {
    const std::byte* first = scales + k_panel_columns * sizeof(float);  // after s2
    const __m256i words = _mm256_cvtepu8_epi16(
        _mm_load_si128(reinterpret_cast<const __m128i*>(first + g * k_panel_columns)));
    return times(converted(f16_of_upper(_mm256_slli_epi16(words, 8))), both(256.0F));
  }
};

}  // namespace
}  // namespace moetier::kernels
