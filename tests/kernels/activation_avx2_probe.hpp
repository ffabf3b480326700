#pragma once
// The AVX2 form of the activations over arrays, so that a test built for the baseline can call it.
// Requires: a processor with AVX2 and FMA; count is a multiple of 8. Thread: any.

#include <cstddef>

#include "schemas/model/activation.hpp"

namespace moetier::kernels {

void activate_avx2(activation_kind kind, const activation_constants& constants, const float* g,
                   const float* l, std::size_t count, float* out);

}  // namespace moetier::kernels
