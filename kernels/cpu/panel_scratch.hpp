#pragma once
// The workspace of one call of a panel_backend, cut into its parts. Only its own units include it.
// Thread: engine.

#include "kernels/cpu/panel_backend.hpp"

namespace moetier::kernels {

inline constexpr std::size_t k_low_floats = 2 * k_lora_rank_max;  // A x of one row: gate, up

struct panel_backend::scratch {
  wave_row* rows = nullptr;
  wave_tile* tiles = nullptr;
  wave_block* blocks = nullptr;
  float* inputs = nullptr;      // per tile [H][rows]
  float* activated = nullptr;   // per tile [I padded to panels][rows]
  float* sums = nullptr;        // per lane
  float* expanded = nullptr;    // per lane; where weights are quantised
  float* low = nullptr;         // A x of adapters: per row [2][rank]; where there may be adapters
  float* contiguous = nullptr;  // per lane [I]; likewise
};

}  // namespace moetier::kernels
