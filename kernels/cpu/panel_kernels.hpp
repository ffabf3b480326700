#pragma once
// Panel kernels: the leaf functions that one instruction set gives a panel_backend, as a table of
// pointers. A wider set is one more table and one more unit. All sums are chains of fma over
// ascending k, one per element, whatever the tile: bits depend on neither rows nor streams.
// Functions know rows, panels and numbers; never slots, entries or threads. Thread: any
// (constants).

#include <cstddef>
#include <string_view>

#include "kernels/cpu/wave.hpp"
#include "kernels/limits.hpp"
#include "schemas/model/activation.hpp"
#include "schemas/model/weight_format.hpp"

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

// One tile over quantised panels, steps [first, first + tile.depth) of K: every weight becomes f32
// as panel_strip.hpp defines it, is left in `out` for other tiles, and meets the rows on its way.
struct fused_args {
  // rows of step `first`; panel: step 0; sums, resume; stream_bytes between quantised panels.
  tile_args tile;
  std::size_t scales_bytes = 0;  // offset of the scales in a panel
  std::size_t first = 0;         // a multiple of k_expand_steps_min
  // [streams][out_steps][16], 32-byte aligned. Requires: out_steps is even and >= depth.
  float* out = nullptr;
  std::size_t out_steps = 0;
};

using fused_fn = void (*)(const fused_args&);

// Built for the same combinations as a tile_table.
struct fused_table {
  fused_fn of[k_tile_rows_max + 1][k_streams_max + 1] = {};  // [rows][streams]
};

// sums[rows][16] of one FC1 panel, then bias and activation -> out[units][rows].
struct activation_args {
  activation_kind kind = activation_kind::swiglu;
  const activation_constants* constants = nullptr;  // limit +inf where there is none
  const float* bias = nullptr;                      // [16], nullptr = none
  const float* sums = nullptr;
  unsigned rows = 0;
  float* out = nullptr;
};

// What happens to rows and sums around the tiles.
struct panel_row_kernels {
  // rows[i][0..depth) -> out[depth][count].
  void (*interleave)(const float* const* rows, unsigned count, std::size_t depth, float* out);
  void (*activate)(const activation_args& args);
  // sums[r][c] += bias[c] for 16 columns.
  void (*add_bias)(const float* bias, unsigned rows, float* sums);
  // out[column + c] = fma(weight, sums[c], out[column + c]) of each row for 16 columns.
  void (*accumulate)(const float* sums, const wave_row* rows, unsigned count, std::size_t column);
  // lane_dot() of math/lane_dot.hpp.
  float (*dot)(const float* a, const float* b, std::size_t count);
};

struct panel_kernels {
  std::string_view name;             // "cpu_avx2"
  std::string_view identity_prefix;  // of the backend that runs on this table
  tile_table bf16;
  tile_table f32;
  tile_table near;  // as f32, over panels in the first cache: prefetches nothing
  const panel_row_kernels* rows = nullptr;
  const fused_table* fused = nullptr;  // [k_quant_kinds]; that of `none` is empty
};

extern const panel_row_kernels k_panel_row_kernels_avx2;
extern const fused_table k_panel_fused_avx2[k_quant_kinds];  // also needs F16C
extern const panel_kernels k_panel_kernels_avx2;

}  // namespace moetier::kernels
