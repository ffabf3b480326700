#pragma once
// What the row quantiser and the bf16 gather share: the walk over parts of tiles and chunks of K.
// A warp takes one block of K of a part, group after group, four rows at a time: eight lanes a row,
// each load of a row whole lines and each store whole sectors. What happens between load and store
// is the Piece.
//
// A grid of this walk lets the next one start at once: that one waits for it before it reads.

#include <concepts>
#include <cstdint>

#include <cuda_bf16.h>

#include "kernels/cuda/gather_rows_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda {

// One lane's share of one row and one block of K.
//   load(row, block, lane)         lane 0..7; row = the row's first byte
//   store(group, scales, r, lane)  r = row of the group; scales = of the group, fp8 only.
//                                  The eight lanes of a row call it together.
template <class P>
concept row_piece = requires(P p, const std::byte* row, std::byte* group, float* scales) {
  { P::k_format } -> std::convertible_to<gemm_format>;
  { P::k_passes } -> std::convertible_to<std::uint32_t>;  // of four rows, loaded before a store
  p.clear();
  p.load(row, 0u, 0u);
  p.store(group, scales, 0u, 0u, true);
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

template <row_piece Piece>
__device__ __forceinline__ void walk_rows(const gather_rows_args& args,
                                          const gather_rows_plan& plan) {
  constexpr std::uint32_t k_group_bytes = group_bytes(Piece::k_format);
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t in_row = lane % 8;
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();

  const std::uint32_t units = plan.tiles * plan.parts * plan.chunks;
  for (std::uint32_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    // Read tile and count together: a tile behind the last is memory all the same.
    const std::uint32_t t = unit / (plan.parts * plan.chunks);
    const int4 words = *reinterpret_cast<const int4*>(args.tiles.tiles + t);
    if (t >= args.tiles.header->tiles) break;
    const std::uint32_t block = unit % plan.chunks * k_gather_warps + warp;
    if (block >= plan.blocks) continue;
    const auto first_group = static_cast<std::uint32_t>(words.y);
    const auto groups = static_cast<std::uint32_t>(words.z);
    const std::uint32_t from = unit / plan.chunks % plan.parts * plan.part_groups;
    const std::uint32_t to = min(from + plan.part_groups, groups);
    std::byte* const x =
        args.x +
        (std::uint64_t{first_group} * plan.blocks + std::uint64_t{block} * groups) * k_group_bytes;
    auto* const scales = reinterpret_cast<float*>(x + std::size_t{groups} * k_group_code_bytes);

    // Passes of four rows, several in flight.
    for (std::uint32_t pass = from * 2; pass < to * 2; pass += Piece::k_passes) {
      std::int32_t entries[Piece::k_passes];
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        const bool inside = pass + p < to * 2;
        entries[p] = inside ? args.tiles.entry_of[first_group * 8 + (pass + p) * 4 + lane / 8] : -1;
      }
      Piece pieces[Piece::k_passes];
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        pieces[p].clear();
        if (entries[p] < 0) continue;
        const std::uint32_t row = static_cast<std::uint32_t>(entries[p]) / args.k_in;
        pieces[p].load(args.rows + row * args.row_pitch_bytes, block, in_row);
      }
#pragma unroll
      for (std::uint32_t p = 0; p < Piece::k_passes; ++p) {
        const std::uint32_t group = (pass + p) / 2;
        pieces[p].store(x + std::size_t{group} * k_group_code_bytes, scales + group * k_group_rows,
                        (pass + p) % 2 * 4 + lane / 8, in_row, entries[p] >= 0);
      }
    }
  }
  if (args.slot_ids != nullptr) zero_idle_rows(args);
}

}  // namespace moetier::kernels::cuda
