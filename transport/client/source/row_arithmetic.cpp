#include "transport/client/source/row_arithmetic.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "schemas/base/assert.hpp"

// Loops that the compiler vectorises are written once and compiled twice: for any x86-64, and for
// AVX2 with FMA. The sum is written by hand for AVX2, where its partial sums stay in registers; for
// others std::fma is a library call. Contraction is off for the whole house, so all give the same
// bits.
namespace moetier::client {
namespace {

#define MOETIER_ROW_LOOPS(TARGET)                                                        \
  TARGET void widen_bf16(float* out, const std::uint16_t* in, std::size_t n) noexcept {  \
    for (std::size_t i = 0; i < n; ++i) out[i] = f32_from_bf16(in[i]);                   \
  }                                                                                      \
  TARGET void narrow_bf16(std::uint16_t* out, const float* in, std::size_t n) noexcept { \
    for (std::size_t i = 0; i < n; ++i) out[i] = bf16_from_f32(in[i]);                   \
  }

template <class WidenF16, class WidenBf16>
void widen_by(float* out, const void* in, dtype type, std::size_t n, WidenF16 from_f16,
              WidenBf16 from_bf16) noexcept {
  switch (type) {
    case dtype::f32: std::memcpy(out, in, n * sizeof(float)); return;
    case dtype::f16: from_f16(out, static_cast<const std::uint16_t*>(in), n); return;
    case dtype::bf16: from_bf16(out, static_cast<const std::uint16_t*>(in), n); return;
    default: MOETIER_ASSERT(!"hidden types are checked when a call is taken");
  }
}

template <class NarrowF16, class NarrowBf16>
void narrow_by(void* out, dtype type, const float* in, std::size_t n, NarrowF16 to_f16,
               NarrowBf16 to_bf16) noexcept {
  switch (type) {
    case dtype::f32: std::memcpy(out, in, n * sizeof(float)); return;
    case dtype::f16: to_f16(static_cast<std::uint16_t*>(out), in, n); return;
    case dtype::bf16: to_bf16(static_cast<std::uint16_t*>(out), in, n); return;
    default: MOETIER_ASSERT(!"output types are checked when a call is collected");
  }
}

void sum_from(float* out, std::span<const row_term> terms, std::size_t begin,
              std::size_t n) noexcept {
  for (std::size_t i = begin; i < n; ++i) {
    float total = 0;
    for (const row_term& term : terms) total = std::fma(term.weight, term.row[i], total);
    out[i] = total;
  }
}

namespace plain {
MOETIER_ROW_LOOPS()

void sum(float* out, std::span<const row_term> terms, std::size_t n) noexcept {
  sum_from(out, terms, 0, n);
}

void widen_f16(float* out, const std::uint16_t* in, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = f32_from_f16(in[i]);
}
void narrow_f16(std::uint16_t* out, const float* in, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = f16_from_f32(in[i]);
}
void widen(float* out, const void* in, dtype type, std::size_t n) noexcept {
  widen_by(out, in, type, n, widen_f16, widen_bf16);
}
void narrow(void* out, dtype type, const float* in, std::size_t n) noexcept {
  narrow_by(out, type, in, n, narrow_f16, narrow_bf16);
}

constexpr row_arithmetic table{sum, widen, narrow};
}  // namespace plain

#if defined(__x86_64__)
namespace avx2 {
#define MOETIER_AVX2 __attribute__((target("avx2,fma")))
MOETIER_ROW_LOOPS(MOETIER_AVX2)

// Eight sums of eight elements at a time: enough to hide the latency of an fma, and few enough to
// stay in registers beside the weight.
MOETIER_AVX2 void sum(float* out, std::span<const row_term> terms, std::size_t n) noexcept {
  constexpr std::size_t k_lanes = 8;
  constexpr std::size_t k_sums = 8;
  std::size_t i = 0;
  for (; i + k_sums * k_lanes <= n; i += k_sums * k_lanes) {
    __m256 total[k_sums];
    for (__m256& t : total) t = _mm256_setzero_ps();
    for (const row_term& term : terms) {
      const __m256 weight = _mm256_set1_ps(term.weight);
#pragma GCC unroll 8
      for (std::size_t s = 0; s < k_sums; ++s) {
        const __m256 row = _mm256_loadu_ps(term.row + i + s * k_lanes);
        total[s] = _mm256_fmadd_ps(weight, row, total[s]);
      }
    }
    for (std::size_t s = 0; s < k_sums; ++s) _mm256_storeu_ps(out + i + s * k_lanes, total[s]);
  }
  for (; i + k_lanes <= n; i += k_lanes) {
    __m256 total = _mm256_setzero_ps();
    for (const row_term& term : terms) {
      total = _mm256_fmadd_ps(_mm256_set1_ps(term.weight), _mm256_loadu_ps(term.row + i), total);
    }
    _mm256_storeu_ps(out + i, total);
  }
  sum_from(out, terms, i, n);
}

void widen(float* out, const void* in, dtype type, std::size_t n) noexcept {
  widen_by(out, in, type, n, plain::widen_f16, widen_bf16);
}
void narrow(void* out, dtype type, const float* in, std::size_t n) noexcept {
  narrow_by(out, type, in, n, plain::narrow_f16, narrow_bf16);
}

constexpr row_arithmetic table{sum, widen, narrow};
}  // namespace avx2
#endif

#undef MOETIER_ROW_LOOPS

}  // namespace

const row_arithmetic& pick_row_arithmetic(const kernels::cpu_features& features) noexcept {
#if defined(__x86_64__)
  if (features.avx2 && features.fma) return avx2::table;
#endif
  return plain::table;
}

}  // namespace moetier::client
