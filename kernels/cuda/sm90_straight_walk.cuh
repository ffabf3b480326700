#pragma once
// The unit walk: one warp of each block turns unit numbers into units, from the row tiles alone.
// The cluster's first block fetches the numbers and sends them to the second.
//
// All of a tile's FC1 units have smaller numbers than any unit of FC2, and are held by blocks that
// never wait for a later one.
//
// Thread: the walk's warp, all lanes.

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/sm90_straight_shared.cuh"
#include "kernels/cuda/straight_order.hpp"

namespace moetier::kernels::cuda::straight {

template <wgmma::gemm_number Number>
__device__ __forceinline__ unit describe(const expert_gemm_args& args, const unit_place& place,
                                         const row_tile& tile, const std::byte* page) {
  const page_layout& l = args.layout;
  const bool fc1 = place.kind == unit_kind::fc1;
  const std::uint32_t blocks = fc1 ? l.fc1_blocks : l.fc2_blocks;
  const std::uint32_t strips = fc1 ? l.fc1_strips : l.fc2_strips;
  const auto first_group = static_cast<std::uint64_t>(tile.first_group);
  constexpr gemm_format format = k_format<Number>;
  constexpr std::uint64_t mid_blocks_of_pair = 128 / columns_of_block(format);
  const auto* constants = reinterpret_cast<const float*>(page + l.constants);
  const bool shaped = args.activation == gemm_activation::swiglu_bias;
  unit u;
  u.kind = place.exists ? place.kind : unit_kind::idle;
  u.tile = place.tile;
  u.slot = static_cast<std::uint32_t>(tile.slot);
  u.groups = static_cast<std::uint32_t>(tile.groups);
  u.rows = static_cast<std::uint32_t>(tile.rows);
  u.first_strip = place.strip_pair * k_unit_strips;
  u.strips = place.exists ? min(k_unit_strips, strips - u.first_strip) : 0;
  // A block without a unit still passes the other's stages on; where both have none, one stage, so
  // that neither runs ahead.
  u.blocks = place.both_idle ? 1 : blocks;
  u.weights = page + (fc1 ? l.fc1 : l.fc2) + std::uint64_t{u.first_strip} * blocks * k_tile_bytes;
  u.rows_in = (fc1 ? args.x : args.mid) + first_group * blocks * group_bytes(format);
  u.mid = args.mid + (first_group * l.fc2_blocks + place.strip_pair * mid_blocks_of_pair *
                                                       static_cast<std::uint64_t>(u.groups)) *
                         group_bytes(format);
  u.bias = !args.shape.bias ? nullptr
                            : reinterpret_cast<const float*>(page + (fc1 ? l.bias1 : l.bias2)) +
                                  u.first_strip * k_tile_rows;
  u.alpha = shaped ? constants[0] : 1.0F;
  u.beta = shaped ? constants[1] : 0.0F;
  u.limit = constants[2];
  u.sharing = place.sharing;
  u.reads_mid = !fc1;
  u.reread = place.reread;
  return u;
}

// Scales of the unit's strips for all blocks of K.
__device__ __forceinline__ void copy_scales(const expert_gemm_args& args, const unit_place& place,
                                            std::uint32_t blocks, std::uint32_t strips,
                                            const std::byte* page, scale_pairs* to,
                                            std::uint32_t lane) {
  const page_layout& l = args.layout;
  const bool fc1 = place.kind == unit_kind::fc1;
  const std::uint32_t pitch = fc1 ? l.scale_pitch1 : l.scale_pitch2;
  // FC1: gate's row of scales and up's; FC2: the first strip's and the second's, if there is one.
  const float* first = reinterpret_cast<const float*>(page + (fc1 ? l.scales1 : l.scales2)) +
                       std::uint64_t{fc1 ? place.strip_pair : place.strip_pair * 2} * pitch;
  const std::uint32_t step = fc1 ? args.shape.intermediate_size / 128 : strips - 1;
  const float* second = first + std::uint64_t{step} * pitch;
  for (std::uint32_t k = lane; k < blocks; k += 32) {
    const float a = __ldg(first + k);
    const float b = __ldg(second + k);
    to[k].strip[0] = fc1 ? float2{a, b} : float2{a, a};
    to[k].strip[1] = fc1 ? float2{a, b} : float2{b, b};
  }
}

// The cluster's numbers, one after the other. At most 3 are on their way: the first block asks for
// number i once its math warps have left unit i - 3, whose stages the second block's copy warp had
// to fill too.
template <class Shared>
struct number_source {
  const expert_gemm_args& args;
  Shared& shared;
  std::uint32_t rank;
  std::uint32_t lane;

  __device__ __forceinline__ std::uint32_t next(std::uint32_t i) const {
    std::uint32_t number = blockIdx.x / k_straight_cluster;
    if (i == 0) return number;
    const std::uint32_t n = i % k_straight_numbers;
    const std::uint32_t barrier = ptx::shared_address(&shared.number_full[n]);
    if (rank == 0) {
      if (lane == 0) {
        number = gridDim.x / k_straight_cluster +
                 atomicAdd(args.counters + gemm_counters::next_unit, 1u);
        ptx::send_to_rank(ptx::at_rank(ptx::shared_address(&shared.numbers[n]), 1), number,
                          ptx::at_rank(barrier, 1));
      }
      return __shfl_sync(0xffffffffu, number, 0);
    }
    if (lane == 0) ptx::arrive_expecting(barrier, 4);
    // Place 0's first use would be number 0, which needs none.
    ptx::wait(barrier, (i / k_straight_numbers + (n == 0 ? 1 : 0)) & 1u);
    return *const_cast<volatile std::uint32_t*>(&shared.numbers[n]);
  }
};

// What a number stands for in this block.
struct found_unit {
  unit_place place;
  row_tile tile;
  const std::byte* page;
};

// Entries and router weights of a unit of FC2.
__device__ __forceinline__ void copy_rows(const expert_gemm_args& args, const row_tile& tile,
                                          std::int32_t* entries, float* weights,
                                          std::uint32_t lane) {
  const std::int32_t* entry_of =
      args.tiles.entry_of + static_cast<std::int64_t>(tile.first_group) * k_group_rows;
  const auto rows = static_cast<std::uint32_t>(tile.rows);
  for (std::uint32_t row = lane; row < k_straight_tile_rows; row += 32) {
    const std::int32_t entry = row < rows ? entry_of[row] : -1;
    entries[row] = entry;
    weights[row] = entry >= 0 && args.weights != nullptr ? args.weights[entry] : 1.0F;
  }
}

template <wgmma::gemm_number Number>
__device__ __forceinline__ void walk_units(const expert_gemm_args& args,
                                           block_shared<Number>& shared, std::uint32_t rank,
                                           std::uint32_t lane) {
  const unit_order order{args.tiles.header->tiles, strip_pairs(args.layout.fc1_strips),
                         strip_pairs(args.layout.fc2_strips)};
  const number_source<block_shared<Number>> numbers{args, shared, rank, lane};
  for (std::uint32_t i = 0;; ++i) {
    // Find the unit while the queue is still full: the way to it is five dependent loads long.
    const std::uint32_t number = numbers.next(i);
    const bool over = number >= order.numbers();
    found_unit found{};
    if (!over) {
      found.place = order.place_of(args.tiles.tile_segment, args.tiles.segment_tile, number, rank);
      found.tile = args.tiles.tiles[found.place.tile];
      found.page = args.pages[found.tile.slot];
    }

    const std::uint32_t q = i % k_straight_units;
    ptx::wait(ptx::shared_address(&shared.unit_empty[q]), (i / k_straight_units & 1u) ^ 1u);
    if (over) {
      if (lane == 0) {
        shared.units[q].kind = unit_kind::none;
        ptx::arrive(ptx::shared_address(&shared.unit_full[q]));
      }
      return;
    }

    // Describe it and bring along what its rows and columns need.
    const unit u = describe<Number>(args, found.place, found.tile, found.page);
    if constexpr (Number::promoted) {
      if (found.place.exists)
        copy_scales(args, found.place, u.blocks, u.strips, found.page, shared.scales[q], lane);
    }
    if (found.place.kind == unit_kind::fc2)
      copy_rows(args, found.tile, shared.entries[q], shared.row_weights[q], lane);
    if (lane == 0) shared.units[q] = u;
    __syncwarp();
    if (lane == 0) ptx::arrive(ptx::shared_address(&shared.unit_full[q]));
  }
}

}  // namespace moetier::kernels::cuda::straight
