#pragma once
// The two warps of the straight kernel that move bytes. The copy warp fills the stages: per block
// of K the tiles of the unit's strips and the groups of rows that exist; what the cluster's blocks
// have in common, each loads one half of, for both: neither's stage is full without the other.
// Before a unit of FC2 it waits until FC1 of that tile is written. The store warp writes FC1's
// outcome into `mid` and counts it, off the math warps' way. One lane of each does the work.
//
// In L2 rows stay, since every strip pair reads them again. Weights that one cluster reads leave
// first; those that several read at about the same time take their turn.
//
// Thread: lane 0 of the copy warp or of the store warp.

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/sm90_straight_shared.cuh"

namespace moetier::kernels::cuda::straight {

inline constexpr std::uint16_t k_both = 3;  // ranks, as bits
static_assert(k_straight_cluster == 2 && k_unit_strips == k_straight_cluster);
static_assert(group_bytes(gemm_format::fp8) / 2 % 16 == 0);

template <wgmma::gemm_number Number>
__device__ __forceinline__ void fill_stages(const expert_gemm_args& args,
                                            block_shared<Number>& shared, std::uint32_t rank) {
  using stage = typename block_shared<Number>::stage;
  const std::uint64_t leave_first = ptx::policy_evict_first();
  const std::uint64_t in_turn = ptx::policy_evict_normal();
  const std::uint64_t stay = ptx::policy_evict_last();
  const std::uint32_t full = ptx::shared_address(shared.stage_full);
  const std::uint32_t first_stage = ptx::shared_address(shared.stages);
  stage_ring empty{ptx::shared_address(shared.stage_empty), 0xfu};
  const std::uint32_t fc1_parts = strip_pairs(args.layout.fc1_strips);
  std::uint32_t written_tile = 0xffffffffu;  // whose FC1 is known to be written
  bool expired = false;                      // one wait did: the output is void, end soon
  for (unit_queue queue;; ++queue.taken) {
    const unit u = queue.next(shared);
    queue.give_back(shared);
    if (u.kind == unit_kind::none) return;

    if (u.reads_mid && u.tile != written_tile && !expired) {
      expired = !ptx::wait_at_least(args.counters + gemm_counters::first_tile + u.tile, fc1_parts,
                                    args.deadline_ns, args.status, u.slot);
      ptx::fence_async();
      written_tile = u.tile;
    }
    const std::uint32_t row_bytes = u.groups * group_bytes(k_format<Number>);
    const std::uint64_t strip_bytes = std::uint64_t{u.blocks} * k_tile_bytes;
    const std::uint64_t weight_policy = u.reread ? in_turn : leave_first;
    const std::byte* weights = u.weights;
    const std::byte* rows = u.rows_in;
    for (std::uint32_t k = 0; k < u.blocks; ++k) {
      const std::uint32_t s = k % k_straight_stages;
      empty.wait(s);
      empty.pass(s);
      const std::uint32_t to = first_stage + s * static_cast<std::uint32_t>(sizeof(stage));
      const std::uint32_t to_rows = to + k_unit_strips * k_tile_bytes;
      const std::uint32_t barrier = full + s * 8;
      ptx::arrive_expecting(barrier, u.strips * k_tile_bytes + row_bytes);
      if (u.sharing == unit_sharing::weights) {
        // A strip each, or a half each of the only one.
        const std::uint32_t half = u.strips * k_tile_bytes / 2;
        const std::uint64_t from = u.strips == k_unit_strips ? strip_bytes : half;
        ptx::copy_in_all(to + rank * half, weights + rank * from, half, barrier, k_both,
                         weight_policy);
        ptx::copy_in(to_rows, rows, row_bytes, barrier, stay);
      } else {
        for (std::uint32_t strip = 0; strip < u.strips; ++strip)
          ptx::copy_in(to + strip * k_tile_bytes, weights + strip * strip_bytes, k_tile_bytes,
                       barrier, weight_policy);
        const std::uint32_t half = row_bytes / 2;
        ptx::copy_in_all(to_rows + rank * half, rows + rank * half, half, barrier, k_both, stay);
      }
      weights += k_tile_bytes;
      rows += row_bytes;
    }
  }
}

template <wgmma::gemm_number Number>
__device__ __forceinline__ void store_intermediates(const expert_gemm_args& args,
                                                    block_shared<Number>& shared) {
  std::uint32_t stored = 0;
  for (unit_queue queue;; ++queue.taken) {
    const unit& u = queue.next(shared);
    const unit_kind kind = u.kind;
    const std::uint32_t tile = u.tile;
    const std::uint32_t blocks = Number::promoted ? 1 : u.strips;
    const std::uint32_t bytes = blocks * u.groups * group_bytes(k_format<Number>);
    std::byte* const mid = u.mid;
    queue.give_back(shared);
    if (kind == unit_kind::none) return;
    if (kind != unit_kind::fc1) continue;

    ptx::wait(ptx::shared_address(&shared.staged), stored++ & 1u);
    ptx::copy_out(mid, ptx::shared_address(shared.staging), bytes);
    ptx::copy_out_commit();
    ptx::copy_out_wait_read();
    ptx::arrive(ptx::shared_address(&shared.staging_free));
    ptx::copy_out_wait();
    ptx::fence_async();
    ptx::add_release(args.counters + gemm_counters::first_tile + tile, 1);
  }
}

}  // namespace moetier::kernels::cuda::straight
