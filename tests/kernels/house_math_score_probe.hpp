#pragma once
// The AVX2 forms of log1p, exp below zero and the router scores over arrays, so that a test built
// for the baseline can call them. Requires: a processor with AVX2 and FMA; count is a multiple
// of 8. Thread: any.

#include <cstddef>

namespace moetier::kernels {

void log1p_avx2(const float* x, std::size_t count, float* out);
void exp_below_avx2(const float* x, std::size_t count, float* out);  // x <= 0
void sigmoid_avx2(const float* x, std::size_t count, float* out);
void softplus_avx2(const float* x, std::size_t count, float* out);

}  // namespace moetier::kernels
