#pragma once
// What the row quantiser and the bf16 gather share: the walks over tiles and over rows. Eight lanes
// share one row and one block of K, four rows a warp, so that each load of a row is whole lines and
// each store whole sectors; several such passes are loaded before the first is stored. By tile the
// passes of a warp follow each other down one block of K, so it writes whole groups; by row they
// lie side by side in K. What happens between load and store is the Piece.
//
// A grid of this walk lets the next one start at once: that one waits for it before it reads.

#include <concepts>
#include <cstdint>

#include <cuda_bf16.h>

#include "kernels/cuda/gather_rows_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda {

// One lane's share of one row and one block of K. `lane` = 0..7, `r` = the row's number in its
// group. Of format fp8 it also has the block's `scale`, the same in all eight lanes.
template <class P>
concept row_piece = requires(P p, const std::byte* row, std::byte* group) {
  { P::k_format } -> std::convertible_to<gemm_format>;
  { P::k_passes } -> std::convertible_to<std::uint32_t>;  // in flight; whole groups
  requires P::k_passes % (k_group_rows / k_gather_pass_rows) == 0;
  p.clear();                           // instead of load() where there is no row
  p.template load<true>(row, 0u, 0u);  // <whether other entries will read the row>
                                       // the row's first byte, block of K, lane
  p.finish();                          // by all lanes of the warp
  p.store(group, 0u, 0u);              // first byte of the group, r, lane
};

// Output rows of live rows that ask nothing, one row a warp.
__device__ inline void zero_idle_rows(const gather_rows_args& args) {
  const std::uint32_t live = min(*args.rows_live, args.rows_cap);
  const std::uint32_t vectors = args.hidden_size * (args.out_as == out_type::bf16 ? 2 : 4) / 16;
  for (std::uint32_t r = blockIdx.x * k_gather_warps + threadIdx.x / 32; r < live;
       r += gridDim.x * k_gather_warps) {
    if (args.slot_ids[r] != -1) continue;
    auto* const out = reinterpret_cast<uint4*>(args.out + r * args.out_pitch_bytes);
    for (std::uint32_t v = threadIdx.x % 32; v < vectors; v += 32) out[v] = make_uint4(0, 0, 0, 0);
  }
}

// A block of K of a tile's rows: where its groups and, for fp8, their scales begin.
template <gemm_format Format>
struct tile_block {
  std::byte* groups;
  float* scales;

  __device__ tile_block(const gather_rows_args& args, const int4& tile, std::uint32_t blocks,
                        std::uint32_t block)
      : groups(args.x + (static_cast<std::uint64_t>(tile.y) * blocks +
                         static_cast<std::uint64_t>(block) * tile.z) *
                            group_bytes(Format)),
        scales(reinterpret_cast<float*>(groups + std::size_t(tile.z) * k_group_code_bytes)) {}
  template <row_piece Piece>
  __device__ void store(const Piece& piece, std::uint32_t q, std::uint32_t lane) const {
    piece.store(groups + std::size_t{q / k_group_rows} * k_group_code_bytes, q % k_group_rows,
                lane);
  }
  // Those of the rows from q on that the pieces hold, a group's in one go. Requires: all lanes.
  template <row_piece Piece>
  __device__ void store_scales(const Piece (&pieces)[Piece::k_passes], std::uint32_t q,
                               std::uint32_t end) const {
    static_assert(k_group_rows == 2 * k_gather_pass_rows);
    const std::uint32_t r = threadIdx.x % 32;
    const std::uint32_t from = r % k_gather_pass_rows * 8;  // the first lane that has row r
#pragma unroll
    for (std::uint32_t p = 0; p < Piece::k_passes; p += 2) {
      const float low = __shfl_sync(~0u, pieces[p].scale, from);
      const float high = __shfl_sync(~0u, pieces[p + 1].scale, from);
      const std::uint32_t row = q + p * k_gather_pass_rows + r;
      if (r < k_group_rows && row < end) scales[row] = r < k_gather_pass_rows ? low : high;
    }
  }
};

// A row's bytes, which stay in L2 as others do where other entries will read them.
template <bool Again, class T>
__device__ inline T read_row(const T* at) {
  return Again ? *at : __ldcs(at);
}

__device__ inline int4 read_tile(const gather_rows_args& args, std::uint32_t t) {
  return *reinterpret_cast<const int4*>(args.tiles.tiles + t);  // slot, first group, groups, rows
}

template <row_piece Piece, gather_way Way>
__device__ __forceinline__ void walk_tiles(const gather_rows_args& args,
                                           const gather_rows_plan& plan) {
  constexpr bool k_by_chunk = Way == gather_way::by_chunk;
  constexpr std::uint32_t k_chunk_blocks = gather_chunk_blocks(Way, Piece::k_format);
  constexpr std::uint32_t k_warps_of_block = k_gather_warps / k_chunk_blocks;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t tile_parts = plan.tiles * plan.parts;
  for (std::uint32_t unit = blockIdx.x; unit < tile_parts * plan.chunks; unit += gridDim.x) {
    const std::uint32_t chunk = k_by_chunk ? unit / tile_parts : unit % plan.chunks;
    const std::uint32_t tile_part = k_by_chunk ? unit % tile_parts : unit / plan.chunks;
    // Read tile and count together: a tile behind the last is memory all the same.
    const std::uint32_t t = tile_part / plan.parts;
    const int4 tile = read_tile(args, t);
    if (t >= args.tiles.header->tiles) continue;
    const std::uint32_t block = chunk * k_chunk_blocks + warp % k_chunk_blocks;
    if (block >= plan.blocks) continue;
    const tile_block<Piece::k_format> to(args, tile, plan.blocks, block);
    const std::int32_t* const entry_of = args.tiles.entry_of + std::size_t(tile.y) * k_group_rows;
    const std::uint32_t first = tile_part % plan.parts * plan.part_groups * k_group_rows;
    const std::uint32_t end =
        min(first + plan.part_groups * k_group_rows, static_cast<std::uint32_t>(tile.w));

    constexpr std::uint32_t k_rows = Piece::k_passes * k_gather_pass_rows;
    for (std::uint32_t from = first + warp / k_chunk_blocks * k_rows; from < end;
         from += k_warps_of_block * k_rows) {
      const std::uint32_t q0 = from + lane / 8;
      std::int32_t entries[Piece::k_passes];
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        const std::uint32_t q = q0 + p * k_gather_pass_rows;
        entries[p] = q < end ? entry_of[q] : -1;
      }
      Piece pieces[Piece::k_passes];
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        const std::uint32_t row = static_cast<std::uint32_t>(entries[p]) / args.k_in;
        if (entries[p] >= 0) {
          pieces[p].template load<k_by_chunk>(args.rows + row * args.row_pitch_bytes, block,
                                              lane % 8);
        } else {
          pieces[p].clear();
        }
      }
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        pieces[p].finish();
        if (entries[p] >= 0) to.store(pieces[p], q0 + p * k_gather_pass_rows, lane % 8);
      }
      if constexpr (Piece::k_format == gemm_format::fp8) to.store_scales(pieces, from, end);
    }
  }
}

template <row_piece Piece>
__device__ __forceinline__ void walk_rows(const gather_rows_args& args,
                                          const gather_rows_plan& plan) {
  constexpr std::uint32_t k_chunk_blocks = gather_chunk_blocks(gather_way::by_row, Piece::k_format);
  static_assert(k_chunk_blocks % Piece::k_passes == 0);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t live = min(*args.rows_live, args.rows_cap);
  const std::uint32_t units = (live + k_gather_pass_rows - 1) / k_gather_pass_rows * plan.chunks;
  for (std::uint32_t unit = blockIdx.x * k_gather_warps + threadIdx.x / 32; unit < units;
       unit += gridDim.x * k_gather_warps) {
    const std::uint32_t row = unit / plan.chunks * k_gather_pass_rows + lane / 8;
    const std::uint32_t first = unit % plan.chunks * k_chunk_blocks;
    const std::uint32_t end = min(first + k_chunk_blocks, plan.blocks);
    for (std::uint32_t b0 = first; b0 < end; b0 += Piece::k_passes) {
      Piece pieces[Piece::k_passes];
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        if (row < live && b0 + p < end) {
          pieces[p].template load<false>(args.rows + row * args.row_pitch_bytes, b0 + p, lane % 8);
        } else {
          pieces[p].clear();
        }
      }
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) pieces[p].finish();

      // Eight positions at once: each lane finds the place of one of its row's.
      for (std::uint32_t j0 = 0; j0 < args.k_in; j0 += 8) {
        const std::uint32_t j = j0 + lane % 8;
        std::int32_t place = -1;
        if (row < live && j < args.k_in)
          place = args.tiles.place_of[std::size_t{row} * args.k_in + j];
        int4 tile{};
        if (place >= 0)
          tile = read_tile(args, static_cast<std::uint32_t>(place) >> k_place_row_bits);
        for (std::uint32_t i = 0; i < min(args.k_in - j0, 8u); ++i) {
          const std::uint32_t from = lane / 8 * 8 + i;
          const std::int32_t at = __shfl_sync(~0u, place, from);
          const int4 its{0, __shfl_sync(~0u, tile.y, from), __shfl_sync(~0u, tile.z, from), 0};
          if (at < 0) continue;
          const std::uint32_t q = static_cast<std::uint32_t>(at) & ((1u << k_place_row_bits) - 1);
#pragma unroll
          for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
            if (b0 + p >= end) break;
            const tile_block<Piece::k_format> to(args, its, plan.blocks, b0 + p);
            to.store(pieces[p], q, lane % 8);
            if constexpr (Piece::k_format == gemm_format::fp8) {
              if (lane % 8 == 0) to.scales[q] = pieces[p].scale;
            }
          }
        }
        __syncwarp();
      }
    }
  }
}

// The body of a kernel.
template <row_piece Piece, gather_way Way>
__device__ __forceinline__ void gather_pieces(const gather_rows_args& args,
                                              const gather_rows_plan& plan) {
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();
  if constexpr (Way == gather_way::by_row) {
    walk_rows<Piece>(args, plan);
  } else {
    walk_tiles<Piece, Way>(args, plan);
  }
  if (args.slot_ids != nullptr) zero_idle_rows(args);
}

}  // namespace moetier::kernels::cuda
