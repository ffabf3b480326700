#pragma once
// Wave: the part of a call that a panel_backend computes at once, so that its scratch is bounded
// whatever the number of entries. A block is rows of one slot that share one pass over its weights;
// a slot with more than k_block_rows_max entries becomes several blocks of about equal size. Blocks
// are cut into tiles of about equal size, at most k_tile_rows_max rows. Wave row i is entry
// (first entry of the wave) + i; order is that of the entries throughout.
// Its arrays lie in the call's workspace; next_wave() fills them. Thread: engine.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/backend.hpp"

namespace moetier::kernels {

struct wave_row {
  const float* in = nullptr;
  float* out = nullptr;
  float weight = 0;
  const lora_expert* lora = nullptr;  // of this row and slot
};

struct wave_tile {
  std::uint32_t first_row = 0;  // wave row
  std::uint32_t rows = 0;
};

struct wave_block {
  const std::byte* page = nullptr;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_tile = 0;
  std::uint32_t tiles = 0;
};

struct wave {
  std::span<wave_row> rows;  // capacity; `row_count` of them are in use, and so on
  std::span<wave_tile> tiles;
  std::span<wave_block> blocks;
  bool adapted = false;  // some row of the call may have an adapter
  std::uint32_t row_count = 0;
  std::uint32_t tile_count = 0;
  std::uint32_t block_count = 0;
};

// Cuts `rows` rows, at most k_block_rows_max, into tiles of about equal size; returns how many.
std::uint32_t cut_tiles(std::uint32_t first_row, std::uint32_t rows,
                        std::span<wave_tile> tiles) noexcept;

// Fills `w` from the entries at `first` and returns the first entry of the next wave. Requires:
// first < entries, checked by check_entries(); the three capacities are equal and hold either a
// full block or all entries.
std::size_t next_wave(const expert_call& call, std::size_t first, wave& w) noexcept;

}  // namespace moetier::kernels
