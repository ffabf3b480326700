#pragma once
// Groups slot ids into row tiles: a stable counting sort of entry numbers by slot. Each warp takes
// neighbouring entries, ranks equal ids by votes on their bits (match.any takes 14 cycles for each
// distinct id) and counts them in its own 16-bit histogram; a scan over the warps of a block, the
// blocks and the slots gives every entry its place. Integers only and no order by atomics, so the
// tables are a function of the ids alone.
//
// One block does up to 8192 entries. Above, a first launch leaves every block's counts per slot in
// scratch, and every block of the second sums all of them: no block waits for another. Bound by
// latency: launches, two round trips to memory, a dozen barriers, and reading the code itself,
// which is why loops are not unrolled.

#include <cstdint>

#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda {

static_assert(1u << k_place_row_bits == 128, "rows of the largest tile");
inline constexpr std::uint32_t k_no_slot = 0xffffffffu;
// What a slot has, as one number, so that one scan serves all: entries of this block, tiles,
// segments (0 or 1), groups.
struct slot_numbers {
  static constexpr std::uint32_t k_group_bits = 18;
  static constexpr std::uint32_t k_segment_bits = 11;
  static constexpr std::uint32_t k_tile_bits = 15;
  static_assert(k_row_tiles_entries_max / 8 + k_row_tiles_slots_max < 1u << k_group_bits);
  static_assert(k_row_tiles_entries_max / 64 + k_row_tiles_slots_max < 1u << k_tile_bits);
  static_assert(k_row_tiles_slots_max < 1u << k_segment_bits);

  std::uint32_t in_block;
  std::uint32_t tiles;
  std::uint32_t segments;
  std::uint32_t groups;

  __device__ std::uint64_t packed() const {
    return ((std::uint64_t{in_block} << k_tile_bits | tiles) << k_segment_bits | segments)
               << k_group_bits |
           groups;
  }
  static __device__ slot_numbers of(std::uint64_t packed) {
    const auto take = [&packed](std::uint32_t bits) {
      const auto low = static_cast<std::uint32_t>(packed) & ((1u << bits) - 1);
      packed >>= bits;
      return low;
    };
    slot_numbers n;
    n.groups = take(k_group_bits);
    n.segments = take(k_segment_bits);
    n.tiles = take(k_tile_bits);
    n.in_block = static_cast<std::uint32_t>(packed);
    return n;
  }
};

struct row_tiles_shared {
  std::uint32_t has_page[k_row_tiles_slots_max / 32];  // one bit a slot
  // By slot.
  alignas(16) std::uint32_t of_all_blocks[k_row_tiles_slots_max];
  alignas(16) std::uint32_t before_block[k_row_tiles_slots_max];  // entries in earlier blocks
  std::uint32_t sorted_first[k_row_tiles_slots_max];              // of its entries in this block
  std::uint32_t sorted_place[k_row_tiles_slots_max];  // a place less the position among sorted
  std::uint32_t segment_tile[k_row_tiles_slots_max];  // its first tile
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
#pragma unroll 1
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

// Sums of counts over all blocks and over those before this one, eight slots a warp. Requires: all
// threads; a barrier before they are read.
__device__ inline void sum_blocks(const row_tiles_args& args, const row_tiles_plan& plan,
                                  row_tiles_shared& shared) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t vectors = row_tiles_pitch(args.slots) / 8;
  const auto* const counts = reinterpret_cast<const uint4*>(args.scratch);
  for (std::uint32_t v = threadIdx.x / 32; v < vectors; v += plan.threads / 32) {
    std::uint32_t all[8] = {};
    std::uint32_t before[8] = {};
    for (std::uint32_t b = lane; b < plan.blocks; b += 32) {
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
      all[i] = __reduce_add_sync(~0u, all[i]);
      before[i] = __reduce_add_sync(~0u, before[i]);
    }
    if (lane == 0) {
      auto* const to_all = reinterpret_cast<uint4*>(shared.of_all_blocks + v * 8);
      auto* const to_before = reinterpret_cast<uint4*>(shared.before_block + v * 8);
      to_all[0] = make_uint4(all[0], all[1], all[2], all[3]);
      to_all[1] = make_uint4(all[4], all[5], all[6], all[7]);
      to_before[0] = make_uint4(before[0], before[1], before[2], before[3]);
      to_before[1] = make_uint4(before[4], before[5], before[6], before[7]);
    }
  }
}

// What a lane remembers of an entry between rank and place.
inline constexpr std::uint32_t k_rank_bits = 16;
static_assert(k_row_tiles_one_launch_entries_max < 1u << k_rank_bits);

// Parted: the second launch of two. Dynamic shared memory: 16-bit counts [count_rows][pitch]; slot
// and rank of each entry; the entries sorted.
template <bool Parted>
__global__ void __launch_bounds__(k_row_tiles_threads_max)
    row_tiles_kernel(const row_tiles_args args, const row_tiles_plan plan) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  __shared__ row_tiles_shared shared;
  const std::uint32_t tid = threadIdx.x;
  const std::uint32_t lane = tid % 32;
  const std::uint32_t warp = tid / 32;
  const std::uint32_t warps = plan.threads / 32;
  const std::uint32_t pitch = row_tiles_pitch(args.slots);
  auto* const counts = reinterpret_cast<std::uint16_t*>(dynamic);
  auto* const all_ranked = reinterpret_cast<std::uint32_t*>(dynamic + plan.count_rows * pitch * 2);
  std::uint32_t* const ranked = all_ranked + warp * plan.rounds * 32 + lane;
  const std::uint32_t chunk = plan.warps * plan.rounds * 32;
  std::uint32_t* const sorted = all_ranked + chunk;
  const std::uint32_t block_first = blockIdx.x * chunk;

  // Clear the counts.
  auto* const vectors = reinterpret_cast<uint4*>(dynamic);
#pragma unroll 1
  for (std::uint32_t v = tid; v < plan.count_rows * pitch / 8; v += plan.threads)
    vectors[v] = make_uint4(0, 0, 0, 0);
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();

  // Read this warp's first ids, pages and the number of live rows in one round trip.
  const std::uint32_t entries = args.rows_cap * args.k_in;
  const std::uint32_t first = block_first + warp * plan.rounds * 32 + lane;
  const std::uint32_t rounds = warp < plan.warps ? plan.rounds : 0;
  std::int32_t next_id = rounds > 0 && first < entries ? args.slot_ids[first] : -1;
  find_pages(args, shared.has_page);
  const std::uint32_t live = live_entries(args);
  __syncthreads();

  // Rank each entry among those of its warp and slot.
  std::uint16_t* const mine = counts + warp * pitch;
#pragma unroll 1
  for (std::uint32_t r = 0; r < rounds; ++r) {
    const std::uint32_t e = first + r * 32;
    const std::int32_t id = e < live ? next_id : -1;
    if (r + 1 < rounds && e + 32 < entries) next_id = args.slot_ids[e + 32];
    const std::uint32_t slot = slot_of(args, shared.has_page, id);
    if (slot == k_no_slot && id != -1)
      ptx::report(args.status, device_failure::bad_slot, static_cast<std::uint32_t>(id));
    const std::uint32_t equal = lanes_of_slot(min(slot, args.slots), plan.slot_bits);
    const std::uint32_t below = __popc(equal & ((1u << lane) - 1));
    const std::uint32_t before = slot != k_no_slot ? mine[slot] : 0;
    ranked[r * 32] = slot != k_no_slot ? slot << k_rank_bits | (before + below) : k_no_slot;
    __syncwarp();
    if (slot != k_no_slot && below == 0)
      mine[slot] = static_cast<std::uint16_t>(before + __popc(equal));
    __syncwarp();
  }
  if constexpr (Parted) sum_blocks(args, plan, shared);
  __syncthreads();

  // Scan over the warps: of slot tid, entries of earlier warps, then of the block.
  std::uint32_t in_block = 0;
  std::uint32_t total = 0;
  std::uint32_t before_block = 0;
  if (tid < args.slots) {
#pragma unroll 1
    for (std::uint32_t from = 0; from < plan.count_rows; from += k_row_tiles_count_rows) {
      std::uint16_t* const at = counts + from * pitch + tid;
      std::uint32_t of_warp[k_row_tiles_count_rows];
#pragma unroll
      for (std::uint32_t w = 0; w < k_row_tiles_count_rows; ++w) of_warp[w] = at[w * pitch];
#pragma unroll
      for (std::uint32_t w = 0; w < k_row_tiles_count_rows; ++w) {
        at[w * pitch] = static_cast<std::uint16_t>(in_block);
        in_block += of_warp[w];
      }
    }
    total = Parted ? shared.of_all_blocks[tid] : in_block;
    before_block = Parted ? shared.before_block[tid] : 0;
    if constexpr (!Parted) shared.before_block[tid] = 0;
  }

  // Scan over the slots.
  const auto tile_shift = static_cast<std::uint32_t>(__ffs(args.tile_rows)) - 1;
  const std::uint64_t own = slot_numbers{.in_block = in_block,
                                         .tiles = (total + args.tile_rows - 1) >> tile_shift,
                                         .segments = total != 0 ? 1u : 0u,
                                         .groups = (total + 7) / 8}
                                .packed();
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
  const slot_numbers all = slot_numbers::of(__shfl_sync(~0u, upto_lane, 31));
  const slot_numbers before =
      slot_numbers::of(upto - own + __shfl_sync(~0u, upto_lane - of_lane, warp));
  if (total != 0) {
    shared.sorted_first[tid] = before.in_block;
    shared.sorted_place[tid] = before.groups * 8 + before_block - before.in_block;
    shared.segment_tile[tid] = before.tiles;
    shared.first_tile[before.segments] = before.tiles;
    shared.first_group[before.segments] = before.groups;
    shared.rows[before.segments] = total;
    shared.slot[before.segments] = tid;
  }
  if (tid == 0) shared.first_tile[all.segments] = all.tiles;
  __syncthreads();

  // Sort the block's entries; tell each its place.
#pragma unroll 1
  for (std::uint32_t r = 0; r < rounds; ++r) {
    const std::uint32_t e = first + r * 32;
    if (e >= live) break;
    const std::uint32_t slot_rank = ranked[r * 32];
    std::int32_t place = -1;
    if (slot_rank != k_no_slot) {
      const std::uint32_t slot = slot_rank >> k_rank_bits;
      const std::uint32_t nth = mine[slot] + (slot_rank & ((1u << k_rank_bits) - 1));
      sorted[shared.sorted_first[slot] + nth] = slot << k_rank_bits | (e - block_first);
      const std::uint32_t row = shared.before_block[slot] + nth;
      place = static_cast<std::int32_t>((shared.segment_tile[slot] + (row >> tile_shift))
                                            << k_place_row_bits |
                                        (row & (args.tile_rows - 1)));
    }
    if (args.tiles.place_of != nullptr) args.tiles.place_of[e] = place;
  }
  __syncthreads();

  // Entries to their places: neighbours of a slot are neighbours in memory.
#pragma unroll 1
  for (std::uint32_t i = tid; i < all.in_block; i += plan.threads) {
    const std::uint32_t slot = sorted[i] >> k_rank_bits;
    const std::uint32_t e = block_first + (sorted[i] & ((1u << k_rank_bits) - 1));
    args.tiles.entry_of[shared.sorted_place[slot] + i] = static_cast<std::int32_t>(e);
  }

  // Tiles, shared among the blocks: the segment of each by bisection.
  for (std::uint32_t t = blockIdx.x * plan.threads + tid; t < all.tiles;
       t += gridDim.x * plan.threads) {
    std::uint32_t segment = 0;
    for (std::uint32_t end = all.segments; end - segment > 1;) {
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
    for (std::uint32_t p = total; p % 8 != 0; ++p) args.tiles.entry_of[before.groups * 8 + p] = -1;
  }
  for (std::uint32_t s = tid; s <= all.segments; s += plan.threads)
    args.tiles.segment_tile[s] = static_cast<std::int32_t>(shared.first_tile[s]);
  if (warp == 0) {
    const std::uint32_t all_entries =
        __reduce_add_sync(~0u, lane < warps ? shared.warp_entries[lane] : 0);
    if (lane == 0) *args.tiles.header = {all.tiles, all.segments, all.groups, all_entries};
  }
}

}  // namespace moetier::kernels::cuda
