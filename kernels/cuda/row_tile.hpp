#pragma once
// What the grouping step makes of a batch's slot ids, in device memory: row tiles, and which entry
// sits at which place of a tile. An entry is a pair (row r, position j) with a slot id other than
// -1; its number is r * k_in + j. A segment is all entries of one slot in ascending number; it is
// cut into tiles of at most tile_rows rows; each tile starts at a whole group of eight places. A
// slot without entries has no segment. Counts stay on the device: nothing here is read by the host.
//
// Thread: any (values; the memory belongs to the stream that grouped).

#include <bit>
#include <cstdint>

namespace moetier::kernels::cuda {

struct row_tile {
  std::int32_t slot = 0;
  std::int32_t first_group = 0;  // of eight places, over all tiles
  std::int32_t groups = 0;       // ceil(rows / 8)
  std::int32_t rows = 0;         // 1..tile_rows

  bool operator==(const row_tile&) const = default;
};

struct tile_header {
  std::uint32_t tiles = 0;
  std::uint32_t segments = 0;
  std::uint32_t groups = 0;
  std::uint32_t entries = 0;

  bool operator==(const tile_header&) const = default;
};

// Where an entry sits: tile << k_place_row_bits | row of the tile.
inline constexpr std::uint32_t k_place_row_bits = 7;

struct tile_table {
  tile_header* header = nullptr;
  row_tile* tiles = nullptr;             // [tiles], segment after segment, ascending slots
  std::int32_t* segment_tile = nullptr;  // [segments + 1]: first tile of each segment, then tiles
  std::int32_t* tile_segment = nullptr;  // [tiles]
  std::int32_t* entry_of = nullptr;      // [groups * 8]: entry number, -1 = no row at this place
  // (optional) [entries] by entry number: its place, -1 = it has none; nullptr = not wanted. What
  // reads rows once for all their entries needs it.
  std::int32_t* place_of = nullptr;
};

// Heights that the grouping makes: whole groups, and cheap to divide by.
inline constexpr std::uint32_t k_tile_rows_min = 8;
inline constexpr std::uint32_t k_tile_rows_max = 128;
constexpr bool is_tile_rows(std::uint32_t rows) noexcept {
  return std::has_single_bit(rows) && rows >= k_tile_rows_min && rows <= k_tile_rows_max;
}

// Most tiles that `entries` entries over `slots` slots can give.
constexpr std::uint32_t tiles_max(std::uint64_t entries, std::uint32_t slots,
                                  std::uint32_t tile_rows) noexcept {
  const std::uint64_t segments = entries < slots ? entries : slots;
  return static_cast<std::uint32_t>(entries / tile_rows + segments);
}
// Most groups, whatever the tiles' height: only a segment's last one may be partly empty.
constexpr std::uint32_t groups_max(std::uint64_t entries, std::uint32_t slots) noexcept {
  const std::uint64_t segments = entries < slots ? entries : slots;
  return static_cast<std::uint32_t>(entries / 8 + segments);
}

// The first failure of a launch, in one device word: code | slot or row << 8. Anything but 0 voids
// the whole output.
enum class device_failure : std::uint32_t {
  none = 0,
  bad_slot = 1,        // an id outside the table, or of a slot without a page
  wait_expired = 2,    // a wait of one block for another passed its deadline
  bad_router_row = 3,  // logits that choose no experts; the row's ids are -1
};

}  // namespace moetier::kernels::cuda
