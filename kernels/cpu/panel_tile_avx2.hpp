#pragma once
// The tile of panel_kernels.hpp for AVX2 and FMA, over a panel format. Only units built for both
// include it; everything has internal linkage.
//
// Why assembly: left to itself the compiler hoists loads and conversions over the whole unrolled
// body, runs out of the sixteen registers and spills, which costs 15 to 30 % of a 6 x 16 tile. The
// statements below are volatile, so they stay in the order written: per step of K one pair of
// weights, then one broadcast and two fma per row. That order needs 12 sums, 2 weights, a mask and
// a broadcast: sixteen registers, no spill (but for one register, once in four steps, where two or
// three rows meet three or two bf16 streams).
// Thread: any.

#include <immintrin.h>

#include "kernels/cpu/panel_kernels.hpp"

namespace moetier::kernels {
namespace {

// A panel format: bytes per step of K, and how a step's 16 weights become two f32 vectors.
struct f32_weights {
  static constexpr std::size_t k_step_bytes = 64;

  [[gnu::always_inline]] void load(const std::byte* at, __m256& low, __m256& high) const {
    const auto* pair = reinterpret_cast<const __m256*>(at);
    asm volatile(
        "vmovaps %[low_at], %[low]\n\t"
        "vmovaps %[high_at], %[high]"
        : [low] "=&x"(low), [high] "=x"(high)
        : [low_at] "m"(pair[0]), [high_at] "m"(pair[1]));
  }
};

[[gnu::always_inline]] inline __m256 broadcast(const float* x) {
  __m256 row;
  asm volatile("vbroadcastss %[x], %[row]" : [row] "=x"(row) : [x] "m"(*x));
  return row;
}

[[gnu::always_inline]] inline void multiply(__m256 row, __m256 w_low, __m256 w_high, __m256& low,
                                            __m256& high) {
  asm volatile(
      "vfmadd231ps %[w_low], %[row], %[low]\n\t"
      "vfmadd231ps %[w_high], %[row], %[high]"
      : [low] "+x"(low), [high] "+x"(high)
      : [row] "x"(row), [w_low] "x"(w_low), [w_high] "x"(w_high));
}

[[gnu::always_inline]] inline void multiply(const float* x, __m256 w_low, __m256 w_high,
                                            __m256& low, __m256& high) {
  __m256 row;
  asm volatile(
      "vbroadcastss %[x], %[row]\n\t"
      "vfmadd231ps %[w_low], %[row], %[low]\n\t"
      "vfmadd231ps %[w_high], %[row], %[high]"
      : [low] "+x"(low), [high] "+x"(high), [row] "=&x"(row)
      : [x] "m"(*x), [w_low] "x"(w_low), [w_high] "x"(w_high));
}

// One step of K: every stream's pair of weights meets every row.
template <class Weights, unsigned Rows, unsigned Streams>
[[gnu::always_inline]] inline void step(const Weights& weights, const float* x, const std::byte* w,
                                        std::size_t stream, __m256 (&low)[Streams][Rows],
                                        __m256 (&high)[Streams][Rows]) {
  // Several streams meet the same rows: one broadcast serves them all where registers allow.
  constexpr bool k_share_rows = Streams > 1 && Rows * Streams * 2 + 3 + Rows <= 16;
  __m256 row[Rows];
#pragma GCC unroll 8
  for (unsigned r = 0; k_share_rows && r < Rows; ++r) row[r] = broadcast(x + r);
#pragma GCC unroll 8
  for (unsigned s = 0; s < Streams; ++s) {
    __m256 w_low;
    __m256 w_high;
    weights.load(w + s * stream, w_low, w_high);
#pragma GCC unroll 8
    for (unsigned r = 0; r < Rows; ++r) {
      if constexpr (k_share_rows)
        multiply(row[r], w_low, w_high, low[s][r], high[s][r]);
      else
        multiply(x + r, w_low, w_high, low[s][r], high[s][r]);
    }
  }
}

constexpr std::size_t k_unroll = 4;
constexpr std::size_t k_line_bytes = 64;

// Far: the panel lies in memory and is fetched ahead; else it is in the first cache already.
template <class Weights, bool Far, unsigned Rows, unsigned Streams>
void tile(const tile_args& args) {
  constexpr std::size_t k_step = Weights::k_step_bytes;
  constexpr std::size_t k_lines = k_unroll * k_step / k_line_bytes;
  static_assert(Rows * Streams * 2 + 4 <= 16, "the tile fits the vector registers");
  const Weights weights;
  __m256 low[Streams][Rows];
  __m256 high[Streams][Rows];
#pragma GCC unroll 8
  for (unsigned s = 0; s < Streams; ++s) {
#pragma GCC unroll 8
    for (unsigned r = 0; r < Rows; ++r) {
      const float* at = args.sums + (s * Rows + r) * k_panel_columns;
      low[s][r] = args.resume ? _mm256_loadu_ps(at) : _mm256_setzero_ps();
      high[s][r] = args.resume ? _mm256_loadu_ps(at + 8) : _mm256_setzero_ps();
    }
  }

  const float* x = args.rows;
  const std::byte* w = args.panel;
  const std::byte* ahead = args.prefetch;
  const std::size_t stream = args.stream_bytes;
  const std::size_t gap = args.prefetch_gap_bytes;
  const std::size_t move = args.prefetch_step_bytes;
  for (std::size_t quads = args.depth / k_unroll; quads != 0; --quads) {
#pragma GCC unroll 8
    for (unsigned s = 0; Far && s < Streams; ++s) {
#pragma GCC unroll 8
      for (std::size_t line = 0; line < k_lines; ++line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + s * stream + line * gap), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (std::size_t u = 0; u < k_unroll; ++u)
      step(weights, x + u * Rows, w + u * k_step, stream, low, high);
    x += k_unroll * Rows;
    w += k_unroll * k_step;
    ahead += move;
  }
  for (std::size_t rest = args.depth % k_unroll; rest != 0; --rest) {
    step(weights, x, w, stream, low, high);
    x += Rows;
    w += k_step;
  }

#pragma GCC unroll 8
  for (unsigned s = 0; s < Streams; ++s) {
#pragma GCC unroll 8
    for (unsigned r = 0; r < Rows; ++r) {
      float* at = args.sums + (s * Rows + r) * k_panel_columns;
      _mm256_storeu_ps(at, low[s][r]);
      _mm256_storeu_ps(at + 8, high[s][r]);
    }
  }
}

}  // namespace
}  // namespace moetier::kernels
