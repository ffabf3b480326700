// Built for AVX2, FMA and F16C; everything but the table has internal linkage (see CMakeLists.txt).
//
// Every code becomes an f16 first, whose conversion to f32 is one instruction: E4M3 by sign
// extension and a shift, which leaves value / 256 (exact, subnormal codes too); E2M1 and int4 by a
// shuffle that looks up the high byte, the low one being zero. Then one product with the scale, so
// each weight is rounded once, as the format says.
#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/panel_kernels.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t k_line_bytes = 64;
constexpr std::size_t k_ahead_bytes = 2048;

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

// 16 E4M3 codes as values / 256.
[[gnu::always_inline]] inline pair_of_lanes e4m3_parts(const std::byte* at) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
  const __m256i halves =
      _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<short>(0xbfff)));
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}

// Codes of 8 bits: a product with the scale is exact only if it carries the factor 256, which
// must not overflow; scales that large take two products.
struct e4m3_codes {
  static constexpr std::size_t k_step_bytes = 16;

  template <class Finish>
  [[gnu::always_inline]] static void run(const std::byte* at, std::size_t steps, float* out,
                                         const pair_of_lanes& scale, Finish&& finish) {
    const __m256 large = _mm256_set1_ps(0x1p119F);
    const __m256 any = _mm256_or_ps(_mm256_cmp_ps(scale.low, large, _CMP_GE_OQ),
                                    _mm256_cmp_ps(scale.high, large, _CMP_GE_OQ));
    if (_mm256_movemask_ps(any) != 0) {
      for (; steps != 0; --steps, at += k_step_bytes, out += k_panel_columns)
        store(finish(times(times(e4m3_parts(at), both(256.0F)), scale)), out);
      return;
    }
    const pair_of_lanes factor = times(scale, both(256.0F));
    for (; steps != 0; --steps, at += k_step_bytes, out += k_panel_columns)
      store(finish(times(e4m3_parts(at), factor)), out);
  }
};

// High bytes of the f16 that the sixteen codes mean.
struct e2m1_table {
  alignas(16) static constexpr std::uint8_t k_high[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42,
                                                          0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe,
                                                          0xc0, 0xc2, 0xc4, 0xc6};
};
struct int4_table {
  alignas(16) static constexpr std::uint8_t k_high[16] = {0xc8, 0xc7, 0xc6, 0xc5, 0xc4, 0xc2,
                                                          0xc0, 0xbc, 0x00, 0x3c, 0x40, 0x42,
                                                          0x44, 0x45, 0x46, 0x47};
};

// Codes of 4 bits, two steps of K at a time: their groups are even.
template <class Table>
struct nibble_codes {
  static constexpr std::size_t k_step_bytes = 8;

  template <class Finish>
  [[gnu::always_inline]] static void run(const std::byte* at, std::size_t steps, float* out,
                                         const pair_of_lanes& scale, Finish&& finish) {
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(Table::k_high));
    const __m128i mask = _mm_set1_epi8(15);
    const __m128i zero = _mm_setzero_si128();
    for (; steps != 0; steps -= 2, at += 2 * k_step_bytes, out += 2 * k_panel_columns) {
      const __m128i codes = _mm_load_si128(reinterpret_cast<const __m128i*>(at));
      const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(codes, mask));
      const __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(codes, 4), mask));
      const pair_of_lanes first{_mm256_cvtph_ps(_mm_unpacklo_epi8(zero, low)),
                                _mm256_cvtph_ps(_mm_unpacklo_epi8(zero, high))};
      const pair_of_lanes second{_mm256_cvtph_ps(_mm_unpackhi_epi8(zero, low)),
                                 _mm256_cvtph_ps(_mm_unpackhi_epi8(zero, high))};
      store(finish(times(first, scale)), out);
      store(finish(times(second, scale)), out + k_panel_columns);
    }
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
    return times(e4m3_parts(first + g * k_panel_columns), both(256.0F));
  }
};

template <class Codes, class Scales, std::size_t Group, bool Second>
void expand(const expand_args& args) {
  constexpr std::size_t k_group = Group == 0 ? 1 : Group;
  const pair_of_lanes second = Second ? f32_scales::at(args.scales, 0) : pair_of_lanes{};
  const auto finish = [&second](const pair_of_lanes& w) {
    if constexpr (Second) return times(w, second);
    return w;
  };
  const std::size_t end = args.first + args.steps;
  float* out = args.out;
  for (std::size_t k = args.first; k < end;) {
    const std::size_t group_end = Group == 0 ? end : (k / k_group + 1) * k_group;
    const std::size_t next = group_end < end ? group_end : end;
    const std::byte* codes = args.codes + k * Codes::k_step_bytes;
    const std::size_t bytes = (next - k) * Codes::k_step_bytes;
    for (std::size_t b = 0; b < bytes; b += k_line_bytes)
      _mm_prefetch(reinterpret_cast<const char*>(codes + k_ahead_bytes + b), _MM_HINT_T0);
    Codes::run(codes, next - k, out, Scales::at(args.scales, Group == 0 ? 0 : k / k_group), finish);
    out += (next - k) * k_panel_columns;
    k = next;
  }
}

}  // namespace

constinit const expand_fn k_panel_expand_avx2[k_quant_kinds] = {
    nullptr,
    expand<e4m3_codes, f32_scales, 0, false>,                   // fp8_tensor
    expand<e4m3_codes, f32_scales, 128, false>,                 // fp8_block
    expand<e4m3_codes, ue8m0_scales, 32, false>,                // mxfp8
    expand<nibble_codes<e2m1_table>, ue8m0_scales, 32, false>,  // mxfp4
    expand<nibble_codes<e2m1_table>, e4m3_scales, 16, true>,    // nvfp4
    expand<nibble_codes<int4_table>, bf16_scales, 128, false>,  // int4_g128
};

}  // namespace moetier::kernels
