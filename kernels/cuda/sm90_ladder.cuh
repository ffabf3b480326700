#pragma once
// The ladder: both products of decode-sized expert batches in one launch, FC1 with activation (and
// requantisation), then FC2, for rows of one to a few tens a slot. Weights are wgmma's M, rows its
// N: eight rows waste nothing. Bound by reading weights; what it does beside that hides behind
// their stream:
//   - one block a multiprocessor takes units of work (kernels/cuda/ladder_walk.hpp) from a counter,
//     since multiprocessors are not equally fast; FC2 of a tile waits, up to a deadline, until
//     FC1's parts of it are counted, so the stream of weights never stops in between;
//   - weights arrive by bulk copies of whole 16 KB tiles, evicted from L2 first;
//   - K is summed in fixed chunks, so a row's bits depend on its expert and shape alone;
//   - few units (a row or two of a large expert) are split over those chunks.
//
// Rows are independent: what padding rows hold, NaN too, reaches no other row.
//
// What the caller must see to, when the launch is programmatic (it may start while the grid before
// it still runs): that grid writes nothing of what this launch reads or writes but x. Tile table,
// pages, router weights and counters were complete before it began. This holds where the grid
// before is the row quantiser or gather and was itself launched plainly, after the grouping.
//
// A failed wait sets *status; the launch then ends, its output void, its counters anything.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sm90_ladder_block.cuh"
#include "kernels/cuda/sm90_ladder_epilogue.cuh"
#include "kernels/cuda/sm90_ladder_lookahead.cuh"
#include "kernels/cuda/sm90_ladder_math.cuh"
#include "kernels/cuda/sm90_ladder_producers.cuh"

namespace moetier::kernels::cuda::ladder {

template <gemm_format Format>
struct number_of {
  using type = wgmma::bf16;
};
template <>
struct number_of<gemm_format::fp8> {
  using type = wgmma::e4m3;
};

// By warp.
inline constexpr std::uint32_t k_weights_warp = k_ladder_math_threads / 32;
inline constexpr std::uint32_t k_activations_warp = k_weights_warp + 1;
inline constexpr std::uint32_t k_epilogue_warp = k_activations_warp + 1;
static_assert(k_ladder_threads / 32 == k_epilogue_warp + k_ladder_epilogue_warps);
static_assert(k_ladder_math_threads == 128 * k_unit_strips);

__device__ __forceinline__ void make_barriers(const ladder_launch& launch, ladder_shared& s) {
  constexpr std::uint32_t math_warps = k_ladder_math_threads / 32;
  for (std::uint32_t i = 0; i < launch.stages; ++i) {
    ptx::barrier_init(barrier(s.stage_full[i]), 2);  // weights, activations
    ptx::barrier_init(barrier(s.stage_free[i]), math_warps);
  }
  for (std::uint32_t i = 0; i < k_ladder_records; ++i) {
    ptx::barrier_init(barrier(s.record_named[i]), 1);
    ptx::barrier_init(barrier(s.record_full[i]), 1);
    ptx::barrier_init(barrier(s.record_free[i]), math_warps + 1 + k_ladder_epilogue_warps);
  }
  ptx::barrier_init(barrier(s.staging_full), math_warps);
  ptx::barrier_init(barrier(s.staging_free), k_ladder_epilogue_warps);
  ptx::fence_barrier_init();
}

// Of one warp, once the block's own waits for FC1 are over: the last block to leave clears the
// counters that blocks share. By then every tile's FC1 is counted, since some block waited for it;
// counters of split sums are cleared by whoever completes them.
__device__ __forceinline__ void leave(const block& b) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t before = 0;
  if (lane == 0) before = ptx::add_acquire_release(b.args.counters + gemm_counters::blocks_left, 1);
  before = __shfl_sync(~0u, before, 0);
  if (before + 1 != gridDim.x) return;
  const std::uint32_t end = gemm_counters::first_tile + b.walk.tiles;
  for (std::uint32_t i = lane; i < end; i += 32) b.args.counters[i] = 0;
}

// Requires: grid, threads and shared memory as launch says; pointers of args at multiples of 16;
// tiles of at most launch.tile_rows rows, at most as many as the plan's tiles_cap.
template <gemm_format Format>
__global__ void __launch_bounds__(k_ladder_threads, 1)
    ladder_kernel(const __grid_constant__ expert_gemm_args args,
                  const __grid_constant__ ladder_launch launch) {
  extern __shared__ __align__(1024) std::byte ladder_memory[];
  const std::uint32_t warp = threadIdx.x / 32;
  const bool claims = threadIdx.x == k_weights_warp * 32;

  // Set up, with all that the first weights wait for on its way at once.
  std::uint32_t first_number = 0;
  if (claims) first_number = atomicAdd(args.counters + gemm_counters::next_unit, 1u);
  known_tile known;
  if (warp == k_weights_warp) known.begin(args, launch);
  const tile_header header = *args.tiles.header;
  const block b{.args = args,
                .launch = launch,
                .walk = walk_of(launch, header.tiles, header.groups),
                .header = header,
                .memory = ladder_memory};
  if (warp == k_weights_warp) known.keep(b);
  if (threadIdx.x == 0) make_barriers(launch, b.shared());
  __syncthreads();

  // Work, each warp in its role.
  if (warp < k_weights_warp) {
    multiply<typename number_of<Format>::type>(b);
  } else if (warp == k_weights_warp) {
    if (claims) {
      produce_weights<Format>(b, first_number);
      ptx::let_next_grid_start();
    }
  } else if (warp == k_activations_warp) {
    if (threadIdx.x % 32 == 0) produce_activations<Format>(b);
    __syncwarp();
    leave(b);
  } else {
    finish<Format>(b, warp - k_epilogue_warp);
  }
}

}  // namespace moetier::kernels::cuda::ladder
