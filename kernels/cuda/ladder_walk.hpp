#pragma once
// Which pieces of work a ladder launch has: units, numbered through both products, all of FC1
// before all of FC2, tile after tile. A unit is one tile's rows times one pair of weight strips,
// over all of K or, where the product is split, over one chunk of it. The numbers depend on the
// tile table's header alone, so every block sees the same ones and takes the next from a counter.
//
// Thread: any (values, pure functions; host and device).

#include <cstdint>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/ladder_launch.hpp"

namespace moetier::kernels::cuda {

enum class ladder_phase : std::uint32_t { fc1 = 0, fc2 = 1, none = 2 };

struct ladder_unit {
  ladder_phase phase = ladder_phase::none;
  std::uint32_t tile = 0;
  std::uint32_t pair = 0;
  std::uint32_t strips = 0;  // 1 or 2
  std::uint32_t first_block = 0;
  std::uint32_t end_block = 0;
  std::uint32_t chunk_blocks = 0;
  std::uint32_t chunk = 0;
  std::uint32_t parts = 1;  // units that share these sums: the chunks of a split product

  bool operator==(const ladder_unit&) const = default;
};

struct ladder_walk {
  std::uint32_t tiles = 0;
  std::uint32_t fc1_parts = 1;  // units of one tile and pair: 1, or the chunks
  std::uint32_t fc2_parts = 1;
  std::uint32_t fc1_units = 0;
  std::uint32_t units = 0;
  // Where counters of split sums begin, behind those of the tiles.
  std::uint32_t fc1_split_counters = 0;
  std::uint32_t fc2_split_counters = 0;
};

// Adding up partial sums takes about as long as multiplying so many blocks of K.
inline constexpr std::uint32_t k_ladder_exchange_blocks = 7;

// Units of one tile and pair: one for each chunk of K where that shortens the longest block's work
// by more than the exchange costs. Whole units of a product that does not fill the grid take
// k.blocks; split evenly over all blocks they would take k.blocks * units / grid, but a chunk at
// least.
constexpr std::uint32_t parts_of(const ladder_launch& launch, const ladder_product& product,
                                 std::uint32_t tiles, std::uint32_t groups) noexcept {
  const std::uint64_t units = std::uint64_t{tiles} * product.pairs;
  const bool split = units < launch.blocks &&
                     std::uint64_t{groups} * product.pairs <= launch.split_groups &&
                     product.k.blocks * (launch.blocks - units) >=
                         std::uint64_t{k_ladder_exchange_blocks} * launch.blocks &&
                     product.k.blocks >= product.k.chunk_blocks + k_ladder_exchange_blocks;
  return split ? product.k.chunks : 1;
}

constexpr ladder_walk walk_of(const ladder_launch& launch, std::uint32_t tiles,
                              std::uint32_t groups) noexcept {
  const std::uint32_t fc1_whole = tiles * launch.fc1.pairs;
  ladder_walk w;
  w.tiles = tiles;
  w.fc1_parts = parts_of(launch, launch.fc1, tiles, groups);
  w.fc2_parts = parts_of(launch, launch.fc2, tiles, groups);
  w.fc1_units = fc1_whole * w.fc1_parts;
  w.units = w.fc1_units + tiles * launch.fc2.pairs * w.fc2_parts;
  w.fc1_split_counters = gemm_counters::first_tile + tiles;
  w.fc2_split_counters =
      w.fc1_split_counters + (w.fc1_parts > 1 ? fc1_whole * k_ladder_epilogue_warps : 0);
  return w;
}

// Phase none at and beyond the last unit.
constexpr ladder_unit unit_at(const ladder_launch& launch, const ladder_walk& walk,
                              std::uint32_t number) noexcept {
  ladder_unit u;
  if (number >= walk.units) return u;
  const bool fc1 = number < walk.fc1_units;
  const ladder_product& product = fc1 ? launch.fc1 : launch.fc2;
  const std::uint32_t left = fc1 ? number : number - walk.fc1_units;
  u.phase = fc1 ? ladder_phase::fc1 : ladder_phase::fc2;
  u.parts = fc1 ? walk.fc1_parts : walk.fc2_parts;
  const std::uint32_t whole = left / u.parts;
  u.chunk = left - whole * u.parts;
  u.tile = whole / product.pairs;
  u.pair = whole - u.tile * product.pairs;
  const std::uint32_t strips_left = product.strips - u.pair * k_unit_strips;
  u.strips = strips_left < k_unit_strips ? strips_left : k_unit_strips;
  u.chunk_blocks = product.k.chunk_blocks;
  u.first_block = u.chunk * product.k.chunk_blocks;
  const std::uint32_t chunk_end = u.first_block + product.k.chunk_blocks;
  u.end_block = u.parts > 1 && chunk_end < product.k.blocks ? chunk_end : product.k.blocks;
  return u;
}

// Of a split unit: its sums' place among the partials of its product, in groups of eight rows x
// 256 page rows; the chunks of one tile and pair follow each other.
constexpr std::uint64_t partial_group(const ladder_product& product, const ladder_unit& unit,
                                      const row_tile& tile) noexcept {
  const auto groups = static_cast<std::uint32_t>(tile.groups);
  const std::uint64_t first =
      std::uint64_t{static_cast<std::uint32_t>(tile.first_group)} * product.pairs +
      std::uint64_t{unit.pair} * groups;
  return first * product.k.chunks + std::uint64_t{unit.chunk} * groups;
}

}  // namespace moetier::kernels::cuda
