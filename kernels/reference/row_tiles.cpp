#include "kernels/reference/row_tiles.hpp"

#include <algorithm>

namespace moetier::kernels {
namespace {

// Appends one slot's segment; its entries already lie at the table's next group, at `places`.
void append_segment(const cuda::row_tiles_args& args, std::int32_t slot, const std::int32_t* places,
                    std::uint32_t rows) {
  cuda::tile_header& header = *args.tiles.header;
  for (std::uint32_t at = 0; at < rows; at += args.tile_rows) {
    const std::uint32_t tile_rows = std::min(rows - at, args.tile_rows);
    const std::uint32_t groups = (tile_rows + 7) / 8;
    for (std::uint32_t q = 0; args.tiles.place_of != nullptr && q < tile_rows; ++q)
      args.tiles.place_of[places[at + q]] =
          static_cast<std::int32_t>(header.tiles << cuda::k_place_row_bits | q);
    args.tiles.tile_segment[header.tiles] = static_cast<std::int32_t>(header.segments);
    args.tiles.tiles[header.tiles++] = {.slot = slot,
                                        .first_group = static_cast<std::int32_t>(header.groups),
                                        .groups = static_cast<std::int32_t>(groups),
                                        .rows = static_cast<std::int32_t>(tile_rows)};
    header.groups += groups;
  }
  args.tiles.segment_tile[++header.segments] = static_cast<std::int32_t>(header.tiles);
  header.entries += rows;
}

}  // namespace

cuda::launch_status reference::make_row_tiles(const cuda::row_tiles_args& args) noexcept {
  if (!cuda::can_make_row_tiles(args)) return {.error = cuda::launch_status::k_refused};
  const std::uint32_t entries = std::min(*args.rows_live, args.rows_cap) * args.k_in;
  for (std::uint32_t e = 0; e < entries; ++e) {
    const auto slot = static_cast<std::uint32_t>(args.slot_ids[e]);
    const bool bad = slot >= args.slots || args.pages[slot] == nullptr;
    if (args.slot_ids[e] != -1 && bad && *args.status == 0)
      *args.status = static_cast<std::uint32_t>(cuda::device_failure::bad_slot) | slot << 8;
  }
  if (args.tiles.place_of != nullptr) std::fill_n(args.tiles.place_of, entries, -1);
  *args.tiles.header = {};
  args.tiles.segment_tile[0] = 0;
  for (std::uint32_t slot = 0; slot < args.slots; ++slot) {
    if (args.pages[slot] == nullptr) continue;
    std::int32_t* const places = args.tiles.entry_of + args.tiles.header->groups * 8;
    std::uint32_t rows = 0;
    for (std::uint32_t e = 0; e < entries; ++e) {
      if (args.slot_ids[e] == static_cast<std::int32_t>(slot))
        places[rows++] = static_cast<std::int32_t>(e);
    }
    if (rows == 0) continue;
    for (std::uint32_t p = rows; p % 8 != 0; ++p) places[p] = -1;
    append_segment(args, static_cast<std::int32_t>(slot), places, rows);
  }
  return {};
}

}  // namespace moetier::kernels
