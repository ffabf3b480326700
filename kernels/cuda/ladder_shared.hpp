#pragma once
// The fixed part of a ladder block's shared memory, as one struct; behind it lie, at the places
// that the launch plan gives, the weight scales of each record, the staging tile and the ring of
// stages. The plan needs its size, hence a plain header.
//
// A stage is filled by the two producer warps and emptied by the math warps. A record tells all
// roles of one unit: the weights' warp names it, its scales and entry numbers follow by bulk copy,
// and it is free again once math, activations and epilogue are through with it.
//
// Thread: none (the kernel's).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/ladder_launch.hpp"
#include "kernels/cuda/ladder_walk.hpp"
#include "kernels/cuda/row_tile.hpp"

namespace moetier::kernels::cuda {

struct ladder_tile {
  row_tile tile{};
  const std::byte* page = nullptr;  // of the tile's slot
};

struct ladder_record {
  ladder_unit unit{};
  row_tile tile{};
  const std::byte* page = nullptr;
};

struct ladder_shared {
  // mbarriers
  std::uint64_t stage_full[k_ladder_stages_max];
  std::uint64_t stage_free[k_ladder_stages_max];
  std::uint64_t record_named[k_ladder_records];
  std::uint64_t record_full[k_ladder_records];
  std::uint64_t record_free[k_ladder_records];
  std::uint64_t staging_full;
  std::uint64_t staging_free;

  ladder_record records[k_ladder_records];
  ladder_tile known[k_ladder_known_tiles];  // the table's first tiles
  alignas(16) std::int32_t entries[k_ladder_records][k_ladder_tile_rows_max];
};

}  // namespace moetier::kernels::cuda
