#pragma once
// The AVX2 forms of exp and silu over arrays, so that a test built for the baseline can call them.
// Requires: a processor with AVX2 and FMA; count is a multiple of 8. Thread: any.

#include <cstddef>

namespace moetier::kernels {

void exp_avx2(const float* x, std::size_t count, float* out);
void swiglu_avx2(const float* gate, const float* up, std::size_t count, float* out);

}  // namespace moetier::kernels
