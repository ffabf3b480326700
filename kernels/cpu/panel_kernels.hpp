#pragma once
// Panel kernels: the leaf functions that one instruction set gives a panel_backend, as a table of
// pointers. A wider set is one more table and one more unit. All sums are chains of fma over
// ascending k, one per element, whatever the tile: bits depend on neither rows nor streams.
// Functions know rows, panels and numbers; never slots, entries or threads. Thread: any
// (constants).

#include <cstddef>
#include <string_view>

#include "kernels/limits.hpp"

namespace moetier::kernels {

// One tile: `rows` rows times `streams` panels that lie stream_bytes apart, over `depth` steps of
// K. sums[stream][row][16]: 8 lows, then 8 highs.
struct tile_args {
  const float* rows = nullptr;  // [depth][rows]
  const std::byte* panel = nullptr;
  std::size_t stream_bytes = 0;
  std::size_t depth = 0;
  float* sums = nullptr;
  bool resume = false;  // continue the chains in `sums` instead of starting from +0
  // Every 4 steps of K, per stream: the lines at prefetch, prefetch + gap, ...; then prefetch
  // moves.
  const std::byte* prefetch = nullptr;
  std::size_t prefetch_gap_bytes = 0;
  std::size_t prefetch_step_bytes = 0;
};

using tile_fn = void (*)(const tile_args&);

inline constexpr unsigned k_streams_max = 4;

// Tiles of one panel format. A tile of few rows runs over several panels at once, to have enough
// independent chains for the two fma units; nullptr where a combination is not built. One stream is
// built for every number of rows.
struct tile_table {
  tile_fn of[k_tile_rows_max + 1][k_streams_max + 1] = {};  // [rows][streams]
  unsigned prefetch_lines = 0;                              // per 4 steps of K
};

struct panel_kernels {
  std::string_view name;      // "cpu_avx2"
  std::string_view identity;  // of the backend that runs on this table
  tile_table bf16;
  tile_table f32;
  // rows[i][0..depth) -> out[depth][count].
  void (*interleave)(const float* const* rows, unsigned count, std::size_t depth, float* out);
  // sums[rows][8 gates, 8 ups] -> out[8][rows].
  void (*swiglu)(const float* sums, unsigned rows, float* out);
  // out[c] = fma(weight, y[c], out[c]) for 16 columns.
  void (*accumulate)(const float* y, float weight, float* out);
};

extern const panel_kernels k_panel_kernels_avx2;

}  // namespace moetier::kernels
