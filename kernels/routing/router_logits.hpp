#pragma once
// The router's own product, for sessions whose gate the tier computes: logits = x · W^T + bias.
// Each logit is one dot product in f32, summed in 32 lanes (i mod 32, fma in ascending i, the row
// continued with zeros to whole lanes), folded 16, 8, 4, 2, 1, the bias added last. A row's logits
// depend on no other row and are equal in bits on every machine. Thread: any.

#include <cstddef>
#include <cstdint>

#include "schemas/base/dtype.hpp"

namespace moetier::kernels {

struct router_matrix {
  const void* weights = nullptr;  // [columns, width], rows dense
  dtype type = dtype::bf16;       // bf16, f16 or f32
  std::uint32_t columns = 0;
  std::uint32_t width = 0;
  const float* bias = nullptr;  // [columns] or null
};

// x f32 [tokens, width] and logits f32 [tokens, columns] at row pitches in bytes. Any alignment
// that f32 has; never allocates. Requires: matrix.type is one of the three.
void router_logits(const router_matrix& matrix, const float* x, std::size_t x_pitch_bytes,
                   std::uint32_t tokens, float* logits, std::size_t logits_pitch_bytes) noexcept;

// Dot products of one row of x with two rows of W, by type. Requires: b may be a, never null.
struct router_dots {
  using dots = void (*)(const float* x, const void* a, const void* b, std::uint32_t width,
                        float* out);
  dots f32;
  dots bf16;
  dots f16;
};

extern const router_dots k_router_dots_scalar;
extern const router_dots k_router_dots_avx2;

// router_logits() over one given table, for tests and benches. Requires: a machine that runs it.
void router_logits_on(const router_dots& dots, const router_matrix& matrix, const float* x,
                      std::size_t x_pitch_bytes, std::uint32_t tokens, float* logits,
                      std::size_t logits_pitch_bytes) noexcept;

}  // namespace moetier::kernels
