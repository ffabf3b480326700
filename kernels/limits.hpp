#pragma once
// Bounds and tile sizes that only kernels/ knows. Sizes are those of one 256-bit tile: 6 rows by 16
// columns fill the sixteen vector registers (12 sums, 2 weights, a mask, a broadcast). Thread: any.

#include <cstddef>

namespace moetier::kernels {

inline constexpr unsigned k_compute_threads_max = 256;  // of one CPU backend, the caller included
inline constexpr unsigned k_panel_columns = 16;         // outputs of one panel
inline constexpr unsigned k_fc1_panel_units = 8;        // gate and up pairs in a panel of FC1
inline constexpr unsigned k_tile_rows_max = 6;
inline constexpr unsigned k_block_rows_max = 64;  // rows that share one pass over a slot's weights
inline constexpr unsigned k_wave_blocks_full_max =
    16;                                             // a wave holds at most this many full blocks
inline constexpr std::size_t k_depth_block = 2048;  // of K, where several tiles share a panel
inline constexpr std::size_t k_expand_steps = 256;  // of K that are f32 at once, over all streams
inline constexpr std::size_t k_expand_steps_min = 64;  // whole groups of scales, or parts of one
inline constexpr std::size_t k_page_alignment = 64;    // pages and workspaces, and their parts

}  // namespace moetier::kernels
