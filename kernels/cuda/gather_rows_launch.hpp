#pragma once
// From a batch's rows to the tiled activations of FC1, by tile table: the problem of the row
// quantiser (sm90_fp8_quantise_rows.hpp), of the bf16 gather (sm90_bf16_gather_rows.hpp) and of
// their twin (kernels/reference/gather_rows.hpp), and its launch configuration as a pure function.
// Nothing here calls CUDA.
//
// Two ways lead to the same bytes. By tile: each place of a tile fetches its row, and whole groups
// are written. By row, where there are many rows of several entries and the table has place_of:
// each row is read and quantised once, and written to all its places.
//
// Thread: any (values, pure functions).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

// Pointers are in the memory of whoever gathers. Rows, x and outputs at multiples of 16 bytes, as
// are the pitches.
struct gather_rows_args {
  const std::byte* rows = nullptr;  // [rows_cap][hidden_size]
  std::size_t row_pitch_bytes = 0;
  row_type row_as = row_type::bf16;
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 1;         // the row of entry e is e / k_in
  std::uint32_t hidden_size = 0;  // fp8: a multiple of 128, bf16: of 64
  std::uint32_t slots = 0;        // of the table's grouping, as tile_rows
  std::uint32_t tile_rows = 64;
  tile_table tiles{};
  std::byte* x = nullptr;                    // places without a row are left as they are
  const std::uint32_t* rows_live = nullptr;  // read by row, or with slot_ids
  // Live rows whose only slot id is -1 get an output row of zeros. nullptr = none do.
  // Requires: k_in == 1.
  const std::int32_t* slot_ids = nullptr;  // [rows_cap]
  std::byte* out = nullptr;
  std::size_t out_pitch_bytes = 0;
  out_type out_as = out_type::bf16;
};

inline constexpr std::uint32_t k_gather_threads = 256;
inline constexpr std::uint32_t k_gather_warps = k_gather_threads / 32;  // blocks of K side by side
inline constexpr std::uint32_t k_gather_blocks_per_multiprocessor = 4;

// From here on the rows alone keep the device busy (8 entries a row of 2048 columns, by row and by
// chunk: 256 rows 6.1 and 5.9 us, 1024 rows 8.7 and 19.8).
inline constexpr std::uint32_t k_gather_by_row_min = 512;

constexpr bool gathers_by_row(const gather_rows_args& args) noexcept {
  return args.k_in > 1 && args.rows_cap >= k_gather_by_row_min && args.tiles.place_of != nullptr;
}

constexpr bool can_gather_rows(const gather_rows_args& args, gemm_format format) noexcept {
  const auto whole = [](const void* p, std::size_t pitch) {
    return p != nullptr && reinterpret_cast<std::uintptr_t>(p) % 16 == 0 && pitch % 16 == 0;
  };
  const std::size_t row_bytes =
      std::size_t{args.hidden_size} * (args.row_as == row_type::bf16 ? 2 : 4);
  const tile_table& t = args.tiles;
  return args.k_in >= 1 && args.hidden_size >= 1 &&
         args.hidden_size % columns_of_block(format) == 0 && args.slots >= 1 &&
         is_tile_rows(args.tile_rows) && whole(args.rows, args.row_pitch_bytes) &&
         args.row_pitch_bytes >= row_bytes && whole(args.x, 0) && t.header != nullptr &&
         t.tiles != nullptr && t.entry_of != nullptr &&
         (args.rows_live != nullptr || !gathers_by_row(args)) &&
         (args.slot_ids == nullptr ||
          (args.k_in == 1 && args.rows_live != nullptr && whole(args.out, args.out_pitch_bytes)));
}

// By tile a unit of work, for a block of threads, is a part of a tile, its groups, times a chunk of
// K: one block of K for each warp, or, by chunk, k_gather_chunk_columns columns. By row it is, for
// a warp, four rows times a chunk of as many columns.
enum class gather_way : std::uint8_t {
  by_tile = 0,
  by_chunk = 1,  // by tile, all tiles of a chunk of K first
  by_row = 2,
};

struct gather_rows_plan {
  gather_way way = gather_way::by_tile;
  std::uint32_t grid = 1;
  std::uint32_t blocks = 0;       // of K
  std::uint32_t chunks = 1;       // of K
  std::uint32_t tiles = 0;        // at most; by tile
  std::uint32_t part_groups = 0;  // groups of a part; by tile
  std::uint32_t parts = 0;        // of the largest tile; by tile

  bool operator==(const gather_rows_plan&) const = default;
};

inline constexpr std::uint32_t k_gather_pass_rows = 4;        // of a warp, eight lanes each
inline constexpr std::uint32_t k_gather_chunk_columns = 512;  // by row
inline constexpr std::uint32_t k_gather_part_groups_min = 2;  // by tile
inline constexpr std::uint32_t k_gather_few_groups = 4;       // for each block of threads

constexpr std::uint32_t gather_chunk_blocks(gather_way way, gemm_format format) noexcept {
  return way == gather_way::by_tile ? k_gather_warps
                                    : k_gather_chunk_columns / columns_of_block(format);
}

// Few groups: whole parts of tiles, so that all are under way at once. Many: short parts, which
// even out at the end (16384 rows of 7168: 99 us in parts of 2 groups, 102 in parts of 16).
// Requires: can_gather_rows() of the problem.
constexpr gather_rows_plan plan_gather_rows(const gather_rows_args& args, gemm_format format,
                                            const device_size& device) noexcept {
  const std::uint64_t enough =
      std::uint64_t{device.multiprocessors} * k_gather_blocks_per_multiprocessor;
  gather_rows_plan plan;
  plan.way = gathers_by_row(args) ? gather_way::by_row
             : args.k_in > 1      ? gather_way::by_chunk
                                  : gather_way::by_tile;
  plan.blocks = args.hidden_size / columns_of_block(format);
  const std::uint32_t chunk_blocks = gather_chunk_blocks(plan.way, format);
  plan.chunks = static_cast<std::uint32_t>(ceil_div(plan.blocks, chunk_blocks));
  std::uint64_t units = 0;  // of a block of threads
  if (plan.way == gather_way::by_row) {
    units = ceil_div(ceil_div(args.rows_cap, k_gather_pass_rows) * plan.chunks, k_gather_warps);
  } else {
    const std::uint64_t entries = std::uint64_t{args.rows_cap} * args.k_in;
    const std::uint64_t groups = groups_max(entries, args.slots);
    plan.tiles = tiles_max(entries, args.slots, args.tile_rows);
    const std::uint64_t columns = std::uint64_t{plan.tiles} * plan.chunks;
    const std::uint32_t whole = args.tile_rows / k_group_rows;
    // A part gives each warp at least k_gather_part_groups_min groups.
    plan.part_groups = k_gather_part_groups_min * std::max(k_gather_warps / chunk_blocks, 1u);
    if (groups * plan.chunks <= k_gather_few_groups * enough) {
      while (plan.part_groups < whole && columns * ceil_div(whole, plan.part_groups) > enough)
        plan.part_groups *= 2;
    }
    plan.parts = static_cast<std::uint32_t>(ceil_div(whole, plan.part_groups));
    // Rows of zeros are shared among warps even where there is no tile.
    units = std::max<std::uint64_t>(std::uint64_t{plan.tiles} * plan.parts * plan.chunks,
                                    ceil_div(args.rows_cap, k_gather_warps));
  }
  plan.grid = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(units, 1, enough));
  return plan;
}

}  // namespace moetier::kernels::cuda
