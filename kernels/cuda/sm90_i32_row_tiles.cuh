#pragma once
// Groups slot ids into row tiles: a stable counting sort of entry numbers by slot. Each warp takes
// neighbouring entries, ranks equal ids by votes on their bits and counts them in its own 16-bit
// histogram; a scan over the warps of a block, the blocks and the slots gives every entry its
// place. Integers only and no order by atomics, so the tables are a function of the ids alone.
//
// One block does up to 2048 entries. Above, a first launch leaves every block's counts per slot in
// scratch, and every block of the second sums all of them: no block waits for another. Bound by
// latency: launches, two round trips to memory, a dozen barriers.

#include <cstdint>

#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda {

static_assert(1u << k_place_row_bits == 128, "rows of the largest tile");
inline constexpr std::uint32_t k_no_slot = 0xffffffffu;
inline constexpr std::uint32_t k_warps_at_once = 16;  // loads in flight
// tiles | segments | groups of a slot as one number, so that one scan serves all three.
inline constexpr std::uint32_t k_tiles_shift = 44;
inline constexpr std::uint32_t k_segments_shift = 24;
static_assert(k_row_tiles_entries_max / 8 + k_row_tiles_slots_max + k_row_tiles_entries_max / 64 <
              1u << k_segments_shift);

struct row_tiles_shared {
  std::uint32_t has_page[k_row_tiles_slots_max / 32];  // one bit a slot
  // By slot.
  std::uint32_t segment_place[k_row_tiles_slots_max];  // of its first entry
  std::uint32_t segment_tile[k_row_tiles_slots_max];   // its first tile
  std::uint32_t before_block[k_row_tiles_slots_max];   // its entries in earlier blocks
  // By segment.
  std::uint32_t first_tile[k_row_tiles_slots_max + 1];
  std::uint32_t first_group[k_row_tiles_slots_max];
  std::uint32_t rows[k_row_tiles_slots_max];
  std::uint32_t slot[k_row_tiles_slots_max];
  std::uint64_t warp_sums[32];
  std::uint32_t warp_entries[32];
};

__device__ inline std::uint32_t live_entries(const row_tiles_args& args) {
  return min(*args.rows_live, args.rows_cap) * args.k_in;
}

// Requires: all threads; a barrier before the bits are read.
__device__ inline void find_pages(const row_tiles_args& args, std::uint32_t* has_page) {
  const std::uint32_t s = threadIdx.x;
  const bool page = s < args.slots && args.pages[s] != nullptr;
  const std::uint32_t bits = __ballot_sync(~0u, page);
  if (s % 32 == 0) has_page[s / 32] = bits;
}

// k_no_slot for an entry that has none: -1, or one that cannot be served.
__device__ inline std::uint32_t slot_of(const row_tiles_args& args, const std::uint32_t* has_page,
                                        std::int32_t id) {
  const auto slot = static_cast<std::uint32_t>(id);
  return slot < args.slots && (has_page[slot / 32] >> slot % 32 & 1u) != 0 ? slot : k_no_slot;
}

// Sum over the lanes up to this one.
__device__ inline std::uint64_t scan_warp(std::uint64_t value) {
  for (std::uint32_t d = 1; d < 32; d *= 2) {
    const std::uint64_t below = __shfl_up_sync(~0u, value, d);
    if (threadIdx.x % 32 >= d) value += below;
  }
  return value;
}

// The lanes whose slot is this lane's: a vote a bit, a third of the time of match.any. The slot
// that is none must differ from all in the bits voted on.
__device__ inline std::uint32_t lanes_of_slot(std::uint32_t slot, std::uint32_t bits) {
  std::uint32_t equal = ~0u;
  for (std::uint32_t b = 0; b < bits; ++b) {
    const bool set = (slot >> b & 1u) != 0;
    const std::uint32_t ones = __ballot_sync(~0u, set);
    equal &= set ? ones : ~ones;
  }
  return equal;
}

// First launch of two: counts[blockIdx.x][slot].
__global__ void __launch_bounds__(k_row_tiles_threads_max)
    row_counts_kernel(const row_tiles_args args, const row_tiles_plan plan) {
  __shared__ std::uint32_t counts[k_row_tiles_slots_max];
  __shared__ std::uint32_t has_page[k_row_tiles_slots_max / 32];
  const std::uint32_t tid = threadIdx.x;
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();

  // Clear.
  counts[tid] = 0;
  find_pages(args, has_page);
  const std::uint32_t live = live_entries(args);
  __syncthreads();

  // Count: the order does not matter here.
  const std::uint32_t chunk = plan.warps * 32 * plan.rounds;
  const std::uint32_t end = min(live, (blockIdx.x + 1) * chunk);
  for (std::uint32_t e = blockIdx.x * chunk + tid; e < end; e += plan.threads) {
    const std::uint32_t slot = slot_of(args, has_page, args.slot_ids[e]);
    if (slot != k_no_slot) atomicAdd(&counts[slot], 1u);
  }
  __syncthreads();

  // Leave them, zeros where the pitch passes the slots.
  const std::uint32_t pitch = row_tiles_pitch(args.slots);
  auto* const out = reinterpret_cast<std::uint16_t*>(args.scratch) + blockIdx.x * pitch;
  if (tid < pitch) out[tid] = static_cast<std::uint16_t>(counts[tid]);
}

// Sums of counts over all blocks and over those before this one, for slot tid. Requires: all
// threads; `sums` has 2 * parts * pitch numbers.
struct block_sums {
  std::uint32_t all = 0;
  std::uint32_t before = 0;
};
__device__ inline block_sums sum_blocks(const row_tiles_args& args, const row_tiles_plan& plan,
                                        std::uint32_t* sums) {
  const std::uint32_t pitch = row_tiles_pitch(args.slots);
  const std::uint32_t vectors = pitch / 8;
  const std::uint32_t part = threadIdx.x / vectors;
  const std::uint32_t v = threadIdx.x % vectors;
  if (part < plan.parts) {
    std::uint32_t all[8] = {};
    std::uint32_t before[8] = {};
    const auto* const counts = reinterpret_cast<const uint4*>(args.scratch);
    for (std::uint32_t b = part; b < plan.blocks; b += plan.parts) {
      const uint4 four = __ldcg(counts + b * vectors + v);
      const std::uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (std::uint32_t i = 0; i < 8; ++i) {
        const std::uint32_t count = words[i / 2] >> i % 2 * 16 & 0xffffu;
        all[i] += count;
        before[i] += b < blockIdx.x ? count : 0;
      }
    }
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      sums[part * pitch + v * 8 + i] = all[i];
      sums[(plan.parts + part) * pitch + v * 8 + i] = before[i];
    }
  }
  __syncthreads();
  block_sums out;
  if (threadIdx.x < args.slots) {
    for (std::uint32_t p = 0; p < plan.parts; ++p) {
      out.all += sums[p * pitch + threadIdx.x];
      out.before += sums[(plan.parts + p) * pitch + threadIdx.x];
    }
  }
  return out;
}

// Parted: the second launch of two. Dynamic shared memory: 16-bit counts [warps][pitch], then the
// sums over blocks.
template <bool Parted>
__global__ void __launch_bounds__(k_row_tiles_threads_max)
    row_tiles_kernel(const row_tiles_args args, const row_tiles_plan plan) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ row_tiles_shared shared;
  const std::uint32_t tid = threadIdx.x;
  const std::uint32_t lane = tid % 32;
  const std::uint32_t warp = tid / 32;
  const std::uint32_t warps = plan.threads / 32;
  const bool ranks_entries = warp < plan.warps;
  const std::uint32_t pitch = row_tiles_pitch(args.slots);
  auto* const counts = reinterpret_cast<std::uint16_t*>(dynamic);

  // Clear the counts.
  auto* const vectors = reinterpret_cast<uint4*>(dynamic);
  for (std::uint32_t v = tid; v < plan.warps * pitch / 8; v += plan.threads)
    vectors[v] = make_uint4(0, 0, 0, 0);
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();

  // Read this warp's ids, pages and the number of live rows in one round trip.
  const std::uint32_t entries = args.rows_cap * args.k_in;
  const std::uint32_t first = (blockIdx.x * plan.warps + warp) * plan.rounds * 32 + lane;
  std::int32_t ids[k_row_tiles_rounds_max];
#pragma unroll
  for (std::uint32_t r = 0; r < k_row_tiles_rounds_max; ++r) {
    const std::uint32_t e = first + r * 32;
    ids[r] = ranks_entries && r < plan.rounds && e < entries ? args.slot_ids[e] : -1;
  }
  find_pages(args, shared.has_page);
  const std::uint32_t live = live_entries(args);
  __syncthreads();

  // Rank each entry among those of its warp and slot.
  std::uint32_t slots[k_row_tiles_rounds_max];
  std::uint32_t ranks[k_row_tiles_rounds_max];
  std::uint16_t* const mine = counts + warp * pitch;
  if (ranks_entries) {
#pragma unroll
    for (std::uint32_t r = 0; r < k_row_tiles_rounds_max; ++r) {
      if (r >= plan.rounds) break;
      const std::int32_t id = first + r * 32 < live ? ids[r] : -1;
      const std::uint32_t slot = slot_of(args, shared.has_page, id);
      if (slot == k_no_slot && id != -1)
        ptx::report(args.status, device_failure::bad_slot, static_cast<std::uint32_t>(id));
      slots[r] = slot;
      const std::uint32_t equal = lanes_of_slot(min(slot, args.slots), plan.slot_bits);
      const std::uint32_t below = __popc(equal & ((1u << lane) - 1));
      const std::uint32_t before = slot != k_no_slot ? mine[slot] : 0;
      ranks[r] = before + below;
      __syncwarp();
      if (slot != k_no_slot && below == 0)
        mine[slot] = static_cast<std::uint16_t>(before + __popc(equal));
      __syncwarp();
    }
  }
  __syncthreads();

  // Scan over the warps: of slot tid, entries of earlier warps, then of all.
  std::uint32_t total = 0;
  if (tid < args.slots) {
    for (std::uint32_t from = 0; from < plan.warps; from += k_warps_at_once) {
      std::uint16_t of_warp[k_warps_at_once];
#pragma unroll
      for (std::uint32_t w = 0; w < k_warps_at_once; ++w)
        of_warp[w] = from + w < plan.warps ? counts[(from + w) * pitch + tid] : 0;
#pragma unroll
      for (std::uint32_t w = 0; w < k_warps_at_once; ++w) {
        if (from + w < plan.warps)
          counts[(from + w) * pitch + tid] = static_cast<std::uint16_t>(total);
        total += of_warp[w];
      }
    }
  }
  std::uint32_t before_block = 0;
  if constexpr (Parted) {
    const block_sums sums =
        sum_blocks(args, plan, reinterpret_cast<std::uint32_t*>(dynamic + plan.warps * pitch * 2));
    total = sums.all;
    before_block = sums.before;
  }

  // Scan over the slots.
  const std::uint64_t own = std::uint64_t{(total + args.tile_rows - 1) / args.tile_rows}
                                << k_tiles_shift |
                            std::uint64_t{total != 0} << k_segments_shift | (total + 7) / 8;
  const std::uint64_t upto = scan_warp(own);
  const std::uint32_t warp_total = __reduce_add_sync(~0u, total);
  if (lane == 31) {
    shared.warp_sums[warp] = upto;
    shared.warp_entries[warp] = warp_total;
  }
  __syncthreads();
  // Every warp scans the warps' sums for itself, which saves a barrier.
  const std::uint64_t of_lane = lane < warps ? shared.warp_sums[lane] : 0;
  const std::uint64_t upto_lane = scan_warp(of_lane);
  const std::uint64_t all = __shfl_sync(~0u, upto_lane, 31);
  const std::uint64_t before = upto - own + __shfl_sync(~0u, upto_lane - of_lane, warp);
  const auto tiles = static_cast<std::uint32_t>(all >> k_tiles_shift);
  const auto segments = static_cast<std::uint32_t>(all >> k_segments_shift) &
                        (1u << (k_tiles_shift - k_segments_shift)) - 1;
  const auto groups = static_cast<std::uint32_t>(all) & ((1u << k_segments_shift) - 1);
  const auto first_group = static_cast<std::uint32_t>(before) & ((1u << k_segments_shift) - 1);
  if (total != 0) {
    const auto segment = static_cast<std::uint32_t>(before >> k_segments_shift) &
                         (1u << (k_tiles_shift - k_segments_shift)) - 1;
    const auto first_tile = static_cast<std::uint32_t>(before >> k_tiles_shift);
    shared.segment_place[tid] = first_group * 8;
    shared.segment_tile[tid] = first_tile;
    shared.before_block[tid] = before_block;
    shared.first_tile[segment] = first_tile;
    shared.first_group[segment] = first_group;
    shared.rows[segment] = total;
    shared.slot[segment] = tid;
  }
  if (tid == 0) shared.first_tile[segments] = tiles;
  __syncthreads();

  // Entries to their places, and places of entries.
  const std::uint32_t tile_shift = args.tile_rows == 128 ? 7 : 6;
#pragma unroll
  for (std::uint32_t r = 0; r < k_row_tiles_rounds_max; ++r) {
    if (!ranks_entries || r >= plan.rounds) break;
    const std::uint32_t e = first + r * 32;
    const std::uint32_t slot = slots[r];
    std::int32_t place = -1;
    if (slot != k_no_slot) {
      const std::uint32_t row = shared.before_block[slot] + mine[slot] + ranks[r];
      args.tiles.entry_of[shared.segment_place[slot] + row] = static_cast<std::int32_t>(e);
      place = static_cast<std::int32_t>((shared.segment_tile[slot] + (row >> tile_shift))
                                            << k_place_row_bits |
                                        (row & (args.tile_rows - 1)));
    }
    if (args.tiles.place_of != nullptr && e < live) args.tiles.place_of[e] = place;
  }

  // Tiles, shared among the blocks: the segment of each by bisection.
  for (std::uint32_t t = blockIdx.x * plan.threads + tid; t < tiles;
       t += gridDim.x * plan.threads) {
    std::uint32_t segment = 0;
    for (std::uint32_t end = segments; end - segment > 1;) {
      const std::uint32_t middle = (segment + end) / 2;
      (shared.first_tile[middle] <= t ? segment : end) = middle;
    }
    const std::uint32_t from = (t - shared.first_tile[segment]) * args.tile_rows;
    const std::uint32_t rows = min(shared.rows[segment] - from, args.tile_rows);
    args.tiles.tiles[t] = {static_cast<std::int32_t>(shared.slot[segment]),
                           static_cast<std::int32_t>(shared.first_group[segment] + from / 8),
                           static_cast<std::int32_t>((rows + 7) / 8),
                           static_cast<std::int32_t>(rows)};
    args.tiles.tile_segment[t] = static_cast<std::int32_t>(segment);
  }
  if (blockIdx.x != 0) return;

  // Segments, padding, header: the first block.
  if (total != 0) {
    for (std::uint32_t p = total; p % 8 != 0; ++p) args.tiles.entry_of[first_group * 8 + p] = -1;
  }
  for (std::uint32_t s = tid; s <= segments; s += plan.threads)
    args.tiles.segment_tile[s] = static_cast<std::int32_t>(shared.first_tile[s]);
  if (warp == 0) {
    const std::uint32_t all_entries =
        __reduce_add_sync(~0u, lane < warps ? shared.warp_entries[lane] : 0);
    if (lane == 0) *args.tiles.header = {tiles, segments, groups, all_entries};
  }
}

}  // namespace moetier::kernels::cuda
