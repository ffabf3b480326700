#pragma once
// The arithmetic of a source half on rows of H elements: widening inputs to f32, the two steps of
// the fixed-order sum, rounding once to the output type. Every operation is element by element,
// never reassociated, and fused only where fma is named, so each variant gives the same bits; which
// one runs is chosen once, when a session opens. Thread: any (a table of pure functions).

#include <cstddef>

#include "kernels/backend.hpp"
#include "schemas/base/dtype.hpp"

namespace moetier::client {

struct row_arithmetic {
  void (*first)(float* sum, const float* row, std::size_t n) noexcept;  // sum = +0 + row
  void (*add)(float* sum, const float* row, std::size_t n) noexcept;    // sum = sum + row
  // sum = fma(weight, row, +0), then sum = fma(weight, row, sum)
  void (*first_weighted)(float* sum, float weight, const float* row, std::size_t n) noexcept;
  void (*add_weighted)(float* sum, float weight, const float* row, std::size_t n) noexcept;
  // f32, f16 or bf16 and back; rounds to nearest even. Requires: aligned to the element.
  void (*widen)(float* out, const void* in, dtype type, std::size_t n) noexcept;
  void (*narrow)(void* out, dtype type, const float* in, std::size_t n) noexcept;
};

// The fastest variant that this machine runs.
const row_arithmetic& pick_row_arithmetic(const kernels::cpu_features& features) noexcept;

}  // namespace moetier::client
