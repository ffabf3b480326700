// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include <cstdint>

#include "kernels/quant/row_quantiser.hpp"

namespace moetier::kernels {
namespace {

constexpr int k_infinity_bits = 0x7f800000;

[[gnu::always_inline]] inline __m256i mask_of(std::size_t count) {
  alignas(32) static constexpr int k_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(k_masks + 8 - count));
}

// Eight finite values of at most about 448 -> codes in 32-bit lanes, as e4m3_from_f32().
[[gnu::always_inline]] inline __m256i encode(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
  const __m256i a = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(a, 20), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(a, _mm256_set1_epi32(0x7ffff)), odd);
  const __m256i normal =
      _mm256_sub_epi32(_mm256_srli_epi32(rounded, 20), _mm256_set1_epi32(120 << 3));
  const __m256 shifted = _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_set1_ps(0x1p14F));
  const __m256i subnormal =
      _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(0x46800000));
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3c800000), a);
  const __m256i code = _mm256_blendv_epi8(normal, subnormal, small);
  return _mm256_or_si256(sign, _mm256_min_epi32(code, _mm256_set1_epi32(0x7e)));
}

// Eight codes of 32-bit lanes as bytes.
[[gnu::always_inline]] inline std::uint64_t packed(__m256i codes) {
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(words, words)));
}

void quantise_block(const float* x, std::size_t count, std::uint8_t* codes, float* scale) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  const std::size_t whole = count / 8 * 8;
  const __m256i rest = mask_of(count - whole);
  __m256i most = _mm256_setzero_si256();
  const auto see = [&](__m256 values) {
    most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(values), magnitude));
  };
  for (std::size_t i = 0; i < whole; i += 8) see(_mm256_loadu_ps(x + i));
  see(_mm256_maskload_ps(x + whole, rest));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  const int top = _mm_cvtsi128_si32(four);
  if (top == 0 || top >= k_infinity_bits) {
    *scale = top == 0 ? 1.0F : __builtin_nanf("");
    for (std::size_t i = 0; i < count; ++i) codes[i] = top == 0 ? 0 : 0x7f;
    return;
  }
  const float quotient = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(top))) / 448.0F;
  *scale = quotient > 0x1p-126F ? quotient : 0x1p-126F;
  const __m256 inverse = _mm256_set1_ps(1.0F / *scale);
  const auto eight = [&](__m256 values) { return packed(encode(_mm256_mul_ps(values, inverse))); };
  for (std::size_t i = 0; i < whole; i += 8) {
    const std::uint64_t bytes = eight(_mm256_loadu_ps(x + i));
    __builtin_memcpy(codes + i, &bytes, sizeof bytes);
  }
  if (whole < count) {
    const std::uint64_t bytes = eight(_mm256_maskload_ps(x + whole, rest));
    __builtin_memcpy(codes + whole, &bytes, count - whole);
  }
}

void quantise_row_avx2(const float* row, std::size_t columns, std::uint8_t* codes, float* scales) {
  for (std::size_t c = 0; c < columns; c += k_row_block) {
    const std::size_t left = columns - c;
    quantise_block(row + c, left < k_row_block ? left : k_row_block, codes + c,
                   scales + c / k_row_block);
  }
}

}  // namespace

constinit const row_quantiser_kernels k_row_quantiser_avx2{quantise_row_avx2};

}  // namespace moetier::kernels
