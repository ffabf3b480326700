#include "tests/kernels/house_math_avx2_probe.hpp"

#include "kernels/math/house_math_avx2.hpp"

namespace moetier::kernels {

void exp_avx2(const float* x, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += 8)
    _mm256_storeu_ps(out + i, house_exp8(_mm256_loadu_ps(x + i)));
}

void swiglu_avx2(const float* gate, const float* up, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += 8)
    _mm256_storeu_ps(out + i, house_swiglu8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
}

}  // namespace moetier::kernels
