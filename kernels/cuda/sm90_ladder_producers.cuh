#pragma once
// The two producer warps of a ladder block; one thread of each works. The weights' one also takes
// units from the launch's counter and names them to the others. It never waits for the grid before
// this one, since nothing that it reads is written by that grid; the activations' one does.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sm90_ladder_block.cuh"
#include "kernels/cuda/sm90_ladder_lookahead.cuh"

namespace moetier::kernels::cuda::ladder {

// A claimed unit is late to others: a block claims its next one only when so few blocks of K are
// left to copy of the unit before.
inline constexpr std::uint32_t k_claim_blocks_ahead = 4;

// Weight scales (fp8) and entry numbers of a unit, into its record.
template <gemm_format Format>
__device__ __forceinline__ void copy_record(const block& b, const ladder_record& r, std::uint32_t q,
                                            std::uint64_t policy) {
  ladder_shared& s = b.shared();
  const page_layout& layout = b.args.layout;
  const std::uint32_t full = barrier(s.record_full[q]);
  const std::uint32_t entry_bytes = static_cast<std::uint32_t>(r.tile.groups) * k_group_rows * 4;
  const bool fc1 = r.unit.phase == ladder_phase::fc1;
  std::uint32_t scale_bytes = 0;
  if constexpr (Format == gemm_format::fp8)
    scale_bytes = fc1 ? 2 * layout.scale_pitch1 * 4 : r.unit.strips * layout.scale_pitch2 * 4;
  ptx::arrive_expecting(full, entry_bytes + scale_bytes);
  ptx::copy_in(ptx::shared_address(s.entries[q]),
               b.args.tiles.entry_of + std::int64_t{r.tile.first_group} * k_group_rows, entry_bytes,
               full, policy);
  if constexpr (Format == gemm_format::fp8) {
    const std::uint32_t to = ptx::shared_address(b.scales(q));
    if (fc1) {
      // The unit's gates, then its ups: one block of 128 intermediate columns.
      const std::uint32_t row_bytes = layout.scale_pitch1 * 4;
      const std::uint64_t ups = std::uint64_t{layout.fc2_blocks} * row_bytes;
      const std::byte* gates = r.page + layout.scales1 + std::uint64_t{r.unit.pair} * row_bytes;
      ptx::copy_in(to, gates, row_bytes, full, policy);
      ptx::copy_in(to + row_bytes, gates + ups, row_bytes, full, policy);
    } else {
      const std::uint64_t pair_bytes = std::uint64_t{k_unit_strips} * layout.scale_pitch2 * 4;
      ptx::copy_in(to, r.page + layout.scales2 + r.unit.pair * pair_bytes, scale_bytes, full,
                   policy);
    }
  }
}

// first_number: of this block's first unit.
template <gemm_format Format>
__device__ __forceinline__ void produce_weights(const block& b, std::uint32_t first_number) {
  ladder_shared& s = b.shared();
  const page_layout& layout = b.args.layout;
  const std::uint64_t once = ptx::policy_evict_first();
  const std::uint64_t again = ptx::policy_evict_normal();
  lookahead next(b, first_number);
  ring_place place{.stage = 0, .parity = 1};
  ring_place landing{};  // the oldest stage not yet known to be full
  std::uint32_t in_flight = 0;
  for (std::uint32_t count = 0;; ++count) {
    // Name the unit.
    const std::uint32_t q = record_of(count);
    const ladder_record r = next.finish();
    ptx::wait(barrier(s.record_free[q]), record_parity(count) ^ 1u);
    s.records[q] = r;
    ptx::arrive(barrier(s.record_named[q]));
    if (r.unit.phase == ladder_phase::none) {
      ptx::arrive(barrier(s.record_full[q]));
      return;
    }
    // A full tile is likely to be followed by another one of its slot, which reads the same.
    const bool shared_weights = static_cast<std::uint32_t>(r.tile.rows) == b.launch.tile_rows;
    const std::uint64_t policy = shared_weights ? again : once;
    copy_record<Format>(b, r, q, policy);

    // Its weights.
    const std::uint32_t blocks = b.product(r.unit.phase).k.blocks;
    const std::uint64_t strip_bytes = std::uint64_t{blocks} * k_tile_bytes;
    const std::byte* from = r.page + (r.unit.phase == ladder_phase::fc1 ? layout.fc1 : layout.fc2) +
                            r.unit.pair * k_unit_strips * strip_bytes +
                            std::uint64_t{r.unit.first_block} * k_tile_bytes;
    const ring_place first_place = place;
    const std::uint32_t most_in_flight =
        r.unit.phase == ladder_phase::fc1 ? b.launch.fc1_stages_in_flight : b.launch.stages;
    bool claimed = false;
    for (std::uint32_t k = r.unit.first_block; k < r.unit.end_block; ++k) {
      const std::uint32_t full = barrier(s.stage_full[place.stage]);
      const std::uint32_t to = ptx::shared_address(b.stage(place.stage));
      ptx::wait(barrier(s.stage_free[place.stage]), place.parity);
      // FC2's stages may wait long for activations: they are bounded by the ring alone.
      while (in_flight >= most_in_flight) {
        ptx::wait(barrier(s.stage_full[landing.stage]), landing.parity);
        landing.advance(b.launch.stages);
        --in_flight;
      }
      ++in_flight;
      ptx::arrive_expecting(full, r.unit.strips * k_tile_bytes);
      ptx::copy_in(to, from, k_tile_bytes, full, policy);
      if (r.unit.strips == k_unit_strips)
        ptx::copy_in(to + k_tile_bytes, from + strip_bytes, k_tile_bytes, full, policy);
      from += k_tile_bytes;
      place.advance(b.launch.stages);
      if (claimed) {
        next.step();
      } else if (k + k_claim_blocks_ahead >= r.unit.end_block &&
                 k >= r.unit.first_block + b.launch.stages) {
        next.begin();
        claimed = true;
      }
    }
    // A unit shorter than the ring: claim no other before this one's products have begun, which
    // in FC2 may be long, or a block would sit on two units while others have none.
    if (!claimed) {
      ptx::wait(barrier(s.stage_free[first_place.stage]), first_place.parity ^ 1u);
      next.begin();
    }
  }
}

template <gemm_format Format>
__device__ __forceinline__ void produce_activations(const block& b) {
  ladder_shared& s = b.shared();
  ptx::wait_for_previous_grid();  // which may still be writing x
  ptx::fence_async();
  const std::uint64_t policy = ptx::policy_evict_last();  // every pair of strips reads them again
  constexpr std::uint32_t k_no_tile = ~0u;
  std::uint32_t tile_ready = k_no_tile;
  bool expired = false;
  ring_place place{.stage = 0, .parity = 1};
  for (std::uint32_t count = 0;; ++count) {
    const std::uint32_t q = record_of(count);
    ptx::wait(barrier(s.record_named[q]), record_parity(count));
    const ladder_unit unit = s.records[q].unit;
    const row_tile tile = s.records[q].tile;
    ptx::arrive(barrier(s.record_free[q]));
    if (unit.phase == ladder_phase::none) return;

    // FC2 reads what every FC1 unit of the tile wrote. Once a wait has expired the output is void:
    // go on without waiting, so that the launch ends.
    const bool fc1 = unit.phase == ladder_phase::fc1;
    if (!fc1 && unit.tile != tile_ready && !expired) {
      expired =
          !ptx::wait_at_least(b.tile_counter(unit.tile), b.tile_counter_done(), b.args.deadline_ns,
                              b.args.status, static_cast<std::uint32_t>(tile.slot));
      tile_ready = unit.tile;
      ptx::fence_async();
    }

    const std::uint32_t blocks = b.product(unit.phase).k.blocks;
    const std::uint32_t bytes = static_cast<std::uint32_t>(tile.groups) * group_bytes(Format);
    const std::byte* from =
        (fc1 ? b.args.x : b.args.mid) +
        static_cast<std::uint64_t>(tile.first_group) * blocks * group_bytes(Format) +
        std::uint64_t{unit.first_block} * bytes;
    for (std::uint32_t k = unit.first_block; k < unit.end_block; ++k) {
      const std::uint32_t full = barrier(s.stage_full[place.stage]);
      ptx::wait(barrier(s.stage_free[place.stage]), place.parity);
      ptx::arrive_expecting(full, bytes);
      ptx::copy_in(ptx::shared_address(b.stage(place.stage)) + k_unit_strips * k_tile_bytes, from,
                   bytes, full, policy);
      from += bytes;
      place.advance(b.launch.stages);
    }
  }
}

}  // namespace moetier::kernels::cuda::ladder
