#include "transport/client/source/row_arithmetic.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "schemas/base/assert.hpp"

// The loops are written once and compiled twice: for any x86-64, where std::fma is a library call,
// and for AVX2 with FMA, where the compiler vectorises them. Contraction is off for the
// whole house, so both give the same bits.
namespace moetier::client {
namespace {

#define MOETIER_ROW_LOOPS(TARGET)                                                                  \
  TARGET void first(float* sum, const float* row, std::size_t n) noexcept {                        \
    for (std::size_t i = 0; i < n; ++i) sum[i] = 0.0F + row[i];                                    \
  }                                                                                                \
  TARGET void add(float* sum, const float* row, std::size_t n) noexcept {                          \
    for (std::size_t i = 0; i < n; ++i) sum[i] = sum[i] + row[i];                                  \
  }                                                                                                \
  TARGET void first_weighted(float* sum, float weight, const float* row, std::size_t n) noexcept { \
    for (std::size_t i = 0; i < n; ++i) sum[i] = __builtin_fmaf(weight, row[i], 0.0F);             \
  }                                                                                                \
  TARGET void add_weighted(float* sum, float weight, const float* row, std::size_t n) noexcept {   \
    for (std::size_t i = 0; i < n; ++i) sum[i] = __builtin_fmaf(weight, row[i], sum[i]);           \
  }                                                                                                \
  TARGET void widen_bf16(float* out, const std::uint16_t* in, std::size_t n) noexcept {            \
    for (std::size_t i = 0; i < n; ++i) out[i] = f32_from_bf16(in[i]);                             \
  }                                                                                                \
  TARGET void narrow_bf16(std::uint16_t* out, const float* in, std::size_t n) noexcept {           \
    for (std::size_t i = 0; i < n; ++i) out[i] = bf16_from_f32(in[i]);                             \
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

namespace plain {
MOETIER_ROW_LOOPS()

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

constexpr row_arithmetic table{first, add, first_weighted, add_weighted, widen, narrow};
}  // namespace plain

#if defined(__x86_64__)
namespace avx2 {
#define MOETIER_AVX2 __attribute__((target("avx2,fma")))
MOETIER_ROW_LOOPS(MOETIER_AVX2)

void widen(float* out, const void* in, dtype type, std::size_t n) noexcept {
  widen_by(out, in, type, n, plain::widen_f16, widen_bf16);
}
void narrow(void* out, dtype type, const float* in, std::size_t n) noexcept {
  narrow_by(out, type, in, n, plain::narrow_f16, narrow_bf16);
}

constexpr row_arithmetic table{first, add, first_weighted, add_weighted, widen, narrow};
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
