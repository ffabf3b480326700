#include "kernels/cpu/wave.hpp"

#include <algorithm>

#include "kernels/entries.hpp"
#include "kernels/limits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

// The first of ceil(total / most) parts of about equal size.
constexpr std::size_t even_part(std::size_t total, std::size_t most) noexcept {
  const std::size_t parts = (total + most - 1) / most;
  return (total + parts - 1) / parts;
}

std::size_t segment_end(std::span<const expert_entry> entries, std::size_t first) noexcept {
  std::size_t end = first + 1;
  while (end < entries.size() && entries[end].slot == entries[first].slot) ++end;
  return end;
}

void append_block(const expert_call& call, std::size_t first, std::size_t rows, wave& w) noexcept {
  wave_block& block = w.blocks[w.block_count++];
  block = {.page = call.pages[call.entries[first].slot],
           .first_row = w.row_count,
           .rows = static_cast<std::uint32_t>(rows),
           .first_tile = w.tile_count,
           .tiles = cut_tiles(w.row_count, static_cast<std::uint32_t>(rows),
                              w.tiles.subspan(w.tile_count))};
  w.tile_count += block.tiles;
  for (const expert_entry& entry : call.entries.subspan(first, rows))
    w.rows[w.row_count++] = {.in = input_of(call, entry),
                             .out = output_of(call, entry),
                             .weight = entry.weight,
                             .lora = lora_of(call, entry)};
}

}  // namespace

std::uint32_t cut_tiles(std::uint32_t first_row, std::uint32_t rows,
                        std::span<wave_tile> tiles) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t left = rows; left > 0;) {
    const auto tile_rows = static_cast<std::uint32_t>(even_part(left, k_tile_rows_max));
    tiles[count++] = {.first_row = first_row + rows - left, .rows = tile_rows};
    left -= tile_rows;
  }
  return count;
}

std::size_t next_wave(const expert_call& call, std::size_t first, wave& w) noexcept {
  MOETIER_ASSERT(first < call.entries.size());
  w.row_count = w.tile_count = w.block_count = 0;
  while (first < call.entries.size()) {
    std::size_t left = segment_end(call.entries, first) - first;
    while (left > 0) {
      const std::size_t rows = even_part(left, k_block_rows_max);
      if (w.row_count + rows > w.rows.size()) {
        MOETIER_ASSERT(w.block_count > 0);
        return first;
      }
      append_block(call, first, rows, w);
      first += rows;
      left -= rows;
    }
  }
  return first;
}

}  // namespace moetier::kernels
