// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include "kernels/activation/activation_math.hpp"
#include "kernels/activation/lanes_avx2.hpp"
#include "kernels/cpu/panel_kernels.hpp"

namespace moetier::kernels {
namespace {

// Four steps of four rows: a 4 x 4 transpose, stored `count` apart.
[[gnu::always_inline]] inline void interleave_four(const float* const* rows, std::size_t k,
                                                   unsigned count, float* out) {
  __m128 a = _mm_loadu_ps(rows[0] + k);
  __m128 b = _mm_loadu_ps(rows[1] + k);
  __m128 c = _mm_loadu_ps(rows[2] + k);
  __m128 d = _mm_loadu_ps(rows[3] + k);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(out, a);
  _mm_storeu_ps(out + count, b);
  _mm_storeu_ps(out + 2 * count, c);
  _mm_storeu_ps(out + 3 * count, d);
}

void interleave(const float* const* rows, unsigned count, std::size_t depth, float* out) {
  std::size_t k = 0;
  if (count >= 4) {
    for (; k + 4 <= depth; k += 4) {
      interleave_four(rows, k, count, out + k * count);
      for (unsigned r = 4; r < count; ++r) {
        for (std::size_t step = k; step < k + 4; ++step) out[step * count + r] = rows[r][step];
      }
    }
  }
  for (; k < depth; ++k) {
    for (unsigned r = 0; r < count; ++r) out[k * count + r] = rows[r][k];
  }
}

// Eight units of one row, stored `rows` apart.
[[gnu::always_inline]] inline void scatter(lanes units, unsigned rows, float* out) {
  alignas(32) float values[8];
  _mm256_store_ps(values, units.v);
  for (unsigned j = 0; j < 8; ++j) out[j * rows] = values[j];
}

template <activation_kind Kind>
void activate_as(const activation_args& args) {
  const constants_as<lanes> c{lanes::of(args.constants->alpha), lanes::of(args.constants->beta),
                              lanes::of(args.constants->limit)};
  for (unsigned r = 0; r < args.rows; ++r) {
    lanes low = lanes::at(args.sums + r * k_panel_columns);
    lanes high = lanes::at(args.sums + r * k_panel_columns + 8);
    if (args.bias != nullptr) {
      low = low + lanes::at(args.bias);
      high = high + lanes::at(args.bias + 8);
    }
    if constexpr (is_gated(Kind)) {
      scatter(activated<Kind>(low, high, c), args.rows, args.out + r);
    } else {
      scatter(activated<Kind>(low, low, c), args.rows, args.out + r);
      scatter(activated<Kind>(high, high, c), args.rows, args.out + 8 * args.rows + r);
    }
  }
}

void activate(const activation_args& args) {
  with_kind(args.kind, [&args]<activation_kind Kind>() { activate_as<Kind>(args); });
}

void add_bias(const float* bias, unsigned rows, float* sums) {
  const lanes low = lanes::at(bias);
  const lanes high = lanes::at(bias + 8);
  for (unsigned r = 0; r < rows; ++r, sums += k_panel_columns) {
    _mm256_storeu_ps(sums, (lanes::at(sums) + low).v);
    _mm256_storeu_ps(sums + 8, (lanes::at(sums + 8) + high).v);
  }
}

void accumulate(const float* y, float weight, float* out) {
  const __m256 w = _mm256_set1_ps(weight);
  _mm256_storeu_ps(out, _mm256_fmadd_ps(w, _mm256_loadu_ps(y), _mm256_loadu_ps(out)));
  _mm256_storeu_ps(out + 8, _mm256_fmadd_ps(w, _mm256_loadu_ps(y + 8), _mm256_loadu_ps(out + 8)));
}

// The last eight are masked loads, which fill up with zeros.
float dot(const float* a, const float* b, std::size_t count) {
  alignas(32) static constexpr int k_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  __m256 sums = _mm256_setzero_ps();
  std::size_t k = 0;
  for (; k + 8 <= count; k += 8)
    sums = _mm256_fmadd_ps(_mm256_loadu_ps(a + k), _mm256_loadu_ps(b + k), sums);
  if (k < count) {
    const __m256i mask =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(k_masks + 8 - (count - k)));
    sums = _mm256_fmadd_ps(_mm256_maskload_ps(a + k, mask), _mm256_maskload_ps(b + k, mask), sums);
  }
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace

constinit const panel_row_kernels k_panel_row_kernels_avx2 = {.interleave = interleave,
                                                              .activate = activate,
                                                              .add_bias = add_bias,
                                                              .accumulate = accumulate,
                                                              .dot = dot};

}  // namespace moetier::kernels
