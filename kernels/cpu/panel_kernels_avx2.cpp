// Built for AVX2 and FMA; everything but the table has internal linkage (see CMakeLists.txt).
//
// Why assembly: left to itself the compiler hoists loads and conversions over the whole unrolled
// body, runs out of the sixteen registers and spills, which costs 15 to 30 % of a 6 x 16 tile. The
// statements below are volatile, so they stay in the order written: per step of K one pair of
// weights, then one broadcast and two fma per row. That order needs 12 sums, 2 weights, a mask and
// a broadcast: sixteen registers, no spill (but for one register, once in four steps, where three
// rows meet two bf16 streams).
#include <immintrin.h>

#include "kernels/cpu/panel_kernels.hpp"

namespace moetier::kernels {
namespace {

// Moves the low half of each word to its high half. Where a shift would take one of the two fma
// ports, a byte shuffle has a port of its own: 0.87 -> 0.91 of the fma peak for six rows.
alignas(32) constexpr unsigned char k_raise[32] = {
    0x80, 0x80, 0, 1, 0x80, 0x80, 4, 5, 0x80, 0x80, 8, 9, 0x80, 0x80, 12, 13,
    0x80, 0x80, 0, 1, 0x80, 0x80, 4, 5, 0x80, 0x80, 8, 9, 0x80, 0x80, 12, 13};

// A panel format: bytes per step of K, and how a step's 16 weights become two f32 vectors.
struct bf16_weights {
  static constexpr std::size_t k_step_bytes = 32;
  __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000u)));

  [[gnu::always_inline]] void load(const std::byte* at, __m256& low, __m256& high) const {
    asm volatile(
        "vmovdqa %[at], %[low]\n\t"
        "vandps %[mask], %[low], %[high]\n\t"
        "vpshufb %[raise], %[low], %[low]"
        : [low] "=&x"(low), [high] "=x"(high)
        : [at] "m"(*reinterpret_cast<const __m256*>(at)), [mask] "x"(mask), [raise] "m"(k_raise));
  }
};

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

constexpr std::size_t k_unroll = 4;
constexpr std::size_t k_line_bytes = 64;

template <class Weights, unsigned Rows, unsigned Streams>
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
    for (unsigned s = 0; s < Streams; ++s) {
#pragma GCC unroll 8
      for (std::size_t line = 0; line < k_lines; ++line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + s * stream + line * gap), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (std::size_t u = 0; u < k_unroll; ++u) {
#pragma GCC unroll 8
      for (unsigned s = 0; s < Streams; ++s) {
        __m256 w_low;
        __m256 w_high;
        weights.load(w + s * stream + u * k_step, w_low, w_high);
#pragma GCC unroll 8
        for (unsigned r = 0; r < Rows; ++r)
          multiply(x + u * Rows + r, w_low, w_high, low[s][r], high[s][r]);
      }
    }
    x += k_unroll * Rows;
    w += k_unroll * k_step;
    ahead += move;
  }
  for (std::size_t rest = args.depth % k_unroll; rest != 0; --rest) {
#pragma GCC unroll 8
    for (unsigned s = 0; s < Streams; ++s) {
      __m256 w_low;
      __m256 w_high;
      weights.load(w + s * stream, w_low, w_high);
#pragma GCC unroll 8
      for (unsigned r = 0; r < Rows; ++r) multiply(x + r, w_low, w_high, low[s][r], high[s][r]);
    }
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

template <class Weights>
constexpr tile_table table_of() {
  tile_table table;
  table.of[1][1] = tile<Weights, 1, 1>;
  table.of[1][2] = tile<Weights, 1, 2>;
  table.of[1][4] = tile<Weights, 1, 4>;
  table.of[2][1] = tile<Weights, 2, 1>;
  table.of[2][2] = tile<Weights, 2, 2>;
  table.of[3][1] = tile<Weights, 3, 1>;
  table.of[3][2] = tile<Weights, 3, 2>;
  table.of[4][1] = tile<Weights, 4, 1>;
  table.of[5][1] = tile<Weights, 5, 1>;
  table.of[6][1] = tile<Weights, 6, 1>;
  table.prefetch_lines = k_unroll * Weights::k_step_bytes / k_line_bytes;
  return table;
}

}  // namespace

constinit const panel_kernels k_panel_kernels_avx2 = {
    .name = "cpu_avx2",
    .identity_prefix = "moetier.cpu.avx2.",
    .bf16 = table_of<bf16_weights>(),
    .f32 = table_of<f32_weights>(),
    .rows = &k_panel_row_kernels_avx2,
    .expand = k_panel_expand_avx2,
};

}  // namespace moetier::kernels
