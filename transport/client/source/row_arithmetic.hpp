#pragma once
// The arithmetic of a source half on rows of H elements: widening inputs to f32, the fixed-order
// sum, rounding once to the output type. Every operation is element by element, never reassociated,
// and fused only where fma is named, so each variant gives the same bits; which one runs is chosen
// once, when a session opens. Thread: any (a table of pure functions).

#include <cstddef>
#include <span>

#include "kernels/backend.hpp"
#include "schemas/base/dtype.hpp"

namespace moetier::client {

// One row of a sum. Weight 1 adds the row as it is: fma(1, x, s) is s + x, bit by bit.
struct row_term {
  float weight;
  const float* row;  // [n]
};

struct row_arithmetic {
  // out = fma(weight, row, out) over the terms in their order, beginning at +0; in one pass, so
  // that `out` is written once and may be one of the rows.
  void (*sum)(float* out, std::span<const row_term> terms, std::size_t n) noexcept;
  // f32, f16 or bf16 and back; rounds to nearest even. Requires: aligned to the element.
  void (*widen)(float* out, const void* in, dtype type, std::size_t n) noexcept;
  void (*narrow)(void* out, dtype type, const float* in, std::size_t n) noexcept;
};

// The fastest variant that this machine runs.
const row_arithmetic& pick_row_arithmetic(const kernels::cpu_features& features) noexcept;

}  // namespace moetier::client
