#pragma once
// A grouping problem in host memory, with every output poisoned, for the tests of what makes tile
// tables and of what reads them. Thread: owner.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/reference/row_tiles.hpp"
#include "schemas/base/mix.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::int32_t k_tiles_poison = -77;

// Owns what row_tiles_args points to; not copied, as the arguments point into it.
struct tiles_case {
  std::vector<std::int32_t> slot_ids;
  std::uint32_t rows_live = 0;
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 1;
  std::uint32_t tile_rows = 64;
  std::vector<const std::byte*> pages;
  tile_header header{.tiles = 9, .segments = 9, .groups = 9, .entries = 9};
  std::vector<row_tile> tiles;
  std::vector<std::int32_t> segment_tile, tile_segment, entry_of, place_of;
  std::uint32_t status = 0;

  tiles_case(std::vector<std::int32_t> ids, std::uint32_t positions, std::uint32_t slots,
             std::uint32_t rows_of_tile)
      : slot_ids(std::move(ids)),
        rows_live(static_cast<std::uint32_t>(slot_ids.size()) / positions),
        rows_cap(rows_live),
        k_in(positions),
        tile_rows(rows_of_tile),
        pages(slots, reinterpret_cast<const std::byte*>(&page_)),
        tiles(tiles_max(slot_ids.size(), slots, tile_rows),
              {k_tiles_poison, k_tiles_poison, k_tiles_poison, k_tiles_poison}),
        segment_tile(slots + 1, k_tiles_poison),
        tile_segment(tiles.size(), k_tiles_poison),
        entry_of(groups_max(slot_ids.size(), slots) * std::size_t{8}, k_tiles_poison),
        place_of(slot_ids.size(), k_tiles_poison) {}
  tiles_case(const tiles_case&) = delete;
  tiles_case& operator=(const tiles_case&) = delete;

  std::uint32_t slots() const { return static_cast<std::uint32_t>(pages.size()); }
  row_tiles_args args() {
    return {.slot_ids = slot_ids.data(),
            .rows_live = &rows_live,
            .rows_cap = rows_cap,
            .k_in = k_in,
            .pages = pages.data(),
            .slots = slots(),
            .tile_rows = tile_rows,
            .tiles = {.header = &header,
                      .tiles = tiles.data(),
                      .segment_tile = segment_tile.data(),
                      .tile_segment = tile_segment.data(),
                      .entry_of = entry_of.data(),
                      .place_of = place_of.data()},
            .scratch = reinterpret_cast<std::byte*>(scratch_.data()),
            .scratch_bytes = scratch_.size() * sizeof scratch_[0],
            .status = &status};
  }
  tiles_case& group() {
    reference::make_row_tiles(args());
    return *this;
  }

 private:
  std::byte page_{};
  std::vector<std::uint64_t> scratch_ = std::vector<std::uint64_t>(1 << 15);
};

// `hot_of_four` of four entries ask slot 0, one of 16 none.
inline std::vector<std::int32_t> random_slots(std::uint64_t seed, std::size_t entries,
                                              std::uint32_t slots, unsigned hot_of_four = 1) {
  std::vector<std::int32_t> ids(entries);
  for (std::size_t e = 0; e < entries; ++e) {
    const std::uint64_t draw = mix(seed << 32 ^ e);
    ids[e] = draw % 16 == 0                  ? -1
             : (draw >> 8) % 4 < hot_of_four ? 0
                                             : static_cast<std::int32_t>((draw >> 16) % slots);
  }
  return ids;
}

}  // namespace moetier::kernels::cuda
