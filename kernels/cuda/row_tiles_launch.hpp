#pragma once
// The grouping of a batch's slot ids into row tiles: the problem, and its launch configuration as a
// pure function of it, so that both are tested without a device. The device's version is
// make_row_tiles() in sm90_i32_row_tiles.hpp, the readable twin reference::make_row_tiles() in
// kernels/reference/row_tiles.hpp. Nothing here calls CUDA.
//
// Thread: any (values, pure functions).

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/row_tile.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::uint32_t k_row_tiles_slots_max = 1024;
inline constexpr std::uint32_t k_row_tiles_entries_max = 1u << 20;  // rows_cap * k_in
inline constexpr std::uint32_t k_row_tiles_threads_max = 1024;
inline constexpr std::uint32_t k_row_tiles_rounds_max = 8;  // of 32 entries, by one warp
inline constexpr std::uint32_t k_row_tiles_one_launch_entries_max = 8192;
// Counts of warps are looked at this many at a time.
inline constexpr std::uint32_t k_row_tiles_count_rows = 8;
// Every block of the second launch reads all blocks' counts, so there are few.
inline constexpr std::uint32_t k_row_tiles_blocks_max = 128;
static_assert(k_row_tiles_blocks_max * k_row_tiles_threads_max * k_row_tiles_rounds_max ==
              k_row_tiles_entries_max);

// Pointers are in the memory of whoever groups: the host's for the twin, the device's for CUDA.
struct row_tiles_args {
  const std::int32_t* slot_ids = nullptr;    // [rows_cap][k_in]: 0..slots-1, or -1 = skipped
  const std::uint32_t* rows_live = nullptr;  // rows at or beyond it are not read
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 1;
  const std::byte* const* pages = nullptr;  // [slots]; nullptr = the slot holds no expert
  std::uint32_t slots = 0;                  // 1..k_row_tiles_slots_max
  std::uint32_t tile_rows = 64;             // is_tile_rows()
  // Overwritten; room for tiles_max() tiles, min(entries, slots) + 1 segment ends and groups_max()
  // * 8 places.
  tile_table tiles{};
  std::byte* scratch = nullptr;  // 16-byte aligned; may hold anything
  std::size_t scratch_bytes = 0;
  std::uint32_t* status = nullptr;  // bad_slot where an id is outside or its slot is empty; such an
                                    // entry is dropped
};

constexpr std::uint64_t row_tiles_entries(const row_tiles_args& args) noexcept {
  return std::uint64_t{args.rows_cap} * args.k_in;
}

// Counts of a block as 16-bit numbers: slots, to whole vectors of 16 bytes.
constexpr std::uint32_t row_tiles_pitch(std::uint32_t slots) noexcept {
  return (slots + 7) / 8 * 8;
}

// Monotone in both; 0 where one launch does it.
constexpr std::size_t row_tiles_scratch_bytes(std::uint64_t entries, std::uint32_t slots) noexcept {
  if (entries <= k_row_tiles_one_launch_entries_max) return 0;
  const std::uint64_t blocks = std::min<std::uint64_t>(
      (entries + k_row_tiles_threads_max - 1) / k_row_tiles_threads_max, k_row_tiles_blocks_max);
  return blocks * row_tiles_pitch(slots) * sizeof(std::uint16_t);
}

// Whether every version accepts the problem.
constexpr bool can_make_row_tiles(const row_tiles_args& args) noexcept {
  const std::uint64_t entries = row_tiles_entries(args);
  const tile_table& t = args.tiles;
  return args.k_in >= 1 && entries <= k_row_tiles_entries_max && args.slots >= 1 &&
         args.slots <= k_row_tiles_slots_max && is_tile_rows(args.tile_rows) &&
         (args.slot_ids != nullptr || entries == 0) && args.rows_live != nullptr &&
         args.pages != nullptr && args.status != nullptr && t.header != nullptr &&
         t.segment_tile != nullptr &&
         ((t.tiles != nullptr && t.tile_segment != nullptr && t.entry_of != nullptr) ||
          entries == 0) &&
         args.scratch_bytes >= row_tiles_scratch_bytes(entries, args.slots) &&
         (args.scratch != nullptr || args.scratch_bytes == 0);
}

struct row_tiles_plan {
  std::uint32_t launches = 1;  // 1, or 2: counts of each block, then the tiles
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;      // at least one a slot
  std::uint32_t warps = 1;         // of a block that rank entries: each has counts of all slots
  std::uint32_t rounds = 1;        // of 32 entries, by each of them
  std::uint32_t count_rows = 8;    // warps, to whole k_row_tiles_count_rows
  std::uint32_t slot_bits = 1;     // that tell slots apart, and that there is none
  std::uint32_t shared_bytes = 0;  // dynamic, of the launch that makes the tiles

  bool operator==(const row_tiles_plan&) const = default;
};

// With many slots the counts cost more than the ranks, so fewer warps look at more entries each.
// Requires: can_make_row_tiles() of the problem.
constexpr row_tiles_plan plan_row_tiles(std::uint64_t entries, std::uint32_t slots) noexcept {
  const auto ceil_div = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>((a + b - 1) / b);
  };
  const std::uint32_t pitch = row_tiles_pitch(slots);
  const bool one = entries <= k_row_tiles_one_launch_entries_max;
  row_tiles_plan plan;
  plan.launches = one ? 1 : 2;
  std::uint32_t chunk = static_cast<std::uint32_t>(entries);  // entries of a block
  if (!one)
    chunk = ceil_div(entries, k_row_tiles_blocks_max * k_row_tiles_threads_max) *
            k_row_tiles_threads_max;
  plan.blocks = one ? 1 : ceil_div(entries, chunk);
  const std::uint32_t most_warps = slots <= 256 ? 32 : slots <= 512 ? 16 : 8;
  plan.warps = std::max({std::min(ceil_div(chunk, 32), most_warps),
                         ceil_div(chunk, 32 * k_row_tiles_rounds_max), 1u});
  plan.rounds = std::max(ceil_div(chunk, plan.warps * 32), 1u);
  plan.threads = one ? std::max(plan.warps, ceil_div(slots, 32)) * 32 : k_row_tiles_threads_max;
  plan.count_rows = ceil_div(plan.warps, k_row_tiles_count_rows) * k_row_tiles_count_rows;
  plan.slot_bits = static_cast<std::uint32_t>(std::bit_width(slots));
  plan.shared_bytes =
      plan.count_rows * pitch * static_cast<std::uint32_t>(sizeof(std::uint16_t)) +
      2 * plan.warps * 32 * plan.rounds * static_cast<std::uint32_t>(sizeof(std::uint32_t));
  return plan;
}

}  // namespace moetier::kernels::cuda
