// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
#include <immintrin.h>

#include <cstring>

#include "kernels/activation/activation_math.hpp"
#include "kernels/activation/lanes_avx2.hpp"
#include "kernels/cpu/panel_kernels.hpp"

namespace moetier::kernels {
namespace {

// Four steps of four to six rows: a 4 x 4 transpose, stored `Count` apart, and pairs beside it.
template <unsigned Count>
[[gnu::always_inline]] inline void interleave_four(const float* const* rows, std::size_t k,
                                                   float* out) {
  __m128 a = _mm_loadu_ps(rows[0] + k);
  __m128 b = _mm_loadu_ps(rows[1] + k);
  __m128 c = _mm_loadu_ps(rows[2] + k);
  __m128 d = _mm_loadu_ps(rows[3] + k);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(out, a);
  _mm_storeu_ps(out + Count, b);
  _mm_storeu_ps(out + 2 * Count, c);
  _mm_storeu_ps(out + 3 * Count, d);
  if constexpr (Count > 4) {
    const __m128 e = _mm_loadu_ps(rows[Count - 2] + k);
    const __m128 f = _mm_loadu_ps(rows[Count - 1] + k);
    const __m128 first = _mm_unpacklo_ps(e, f);
    const __m128 second = _mm_unpackhi_ps(e, f);
    const auto put = [&](unsigned step, __m128 pairs, bool upper) {
      auto* at = reinterpret_cast<__m64*>(out + step * Count + Count - 2);
      upper ? _mm_storeh_pi(at, pairs) : _mm_storel_pi(at, pairs);
    };
    put(0, first, false);
    put(1, first, true);
    put(2, second, false);
    put(3, second, true);
  }
}

// Eight steps of two rows.
[[gnu::always_inline]] inline void interleave_two(const float* const* rows, std::size_t k,
                                                  float* out) {
  const __m256 a = _mm256_loadu_ps(rows[0] + k);
  const __m256 b = _mm256_loadu_ps(rows[1] + k);
  const __m256 low = _mm256_unpacklo_ps(a, b);
  const __m256 high = _mm256_unpackhi_ps(a, b);
  _mm256_storeu_ps(out, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(out + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

template <unsigned Count>
void interleave_as(const float* const* rows, std::size_t depth, float* out) {
  std::size_t k = 0;
  if constexpr (Count == 1) {
    std::memcpy(out, rows[0], depth * sizeof(float));
    return;
  } else if constexpr (Count == 2) {
    for (; k + 8 <= depth; k += 8) interleave_two(rows, k, out + k * Count);
  } else if constexpr (Count >= 4) {
    for (; k + 4 <= depth; k += 4) interleave_four<Count>(rows, k, out + k * Count);
  }
  for (; k < depth; ++k) {
    for (unsigned r = 0; r < Count; ++r) out[k * Count + r] = rows[r][k];
  }
}

void interleave(const float* const* rows, unsigned count, std::size_t depth, float* out) {
  switch (count) {
    case 1: return interleave_as<1>(rows, depth, out);
    case 2: return interleave_as<2>(rows, depth, out);
    case 3: return interleave_as<3>(rows, depth, out);
    case 4: return interleave_as<4>(rows, depth, out);
    case 5: return interleave_as<5>(rows, depth, out);
    default: return interleave_as<k_tile_rows_max>(rows, depth, out);
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

void accumulate(const float* sums, const wave_row* rows, unsigned count, std::size_t column) {
  for (unsigned r = 0; r < count; ++r, sums += k_panel_columns) {
    const __m256 w = _mm256_set1_ps(rows[r].weight);
    float* const out = rows[r].out + column;
    const __m256 low = _mm256_fmadd_ps(w, _mm256_loadu_ps(sums), _mm256_loadu_ps(out));
    const __m256 high = _mm256_fmadd_ps(w, _mm256_loadu_ps(sums + 8), _mm256_loadu_ps(out + 8));
    _mm256_storeu_ps(out, low);
    _mm256_storeu_ps(out + 8, high);
  }
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
