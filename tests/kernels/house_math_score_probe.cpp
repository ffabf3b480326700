#include "tests/kernels/house_math_score_probe.hpp"

#include "kernels/math/score_math_avx2.hpp"

namespace moetier::kernels {
namespace {

template <__m256 (*Form)(__m256)>
void each(const float* x, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += 8)
    _mm256_storeu_ps(out + i, Form(_mm256_loadu_ps(x + i)));
}

}  // namespace

void log1p_avx2(const float* x, std::size_t count, float* out) {
  each<house_log1p8>(x, count, out);
}
void exp_below_avx2(const float* x, std::size_t count, float* out) {
  each<house_exp_below8>(x, count, out);
}
void sigmoid_avx2(const float* x, std::size_t count, float* out) {
  each<house_sigmoid8>(x, count, out);
}
void softplus_avx2(const float* x, std::size_t count, float* out) {
  each<house_softplus8>(x, count, out);
}

}  // namespace moetier::kernels
