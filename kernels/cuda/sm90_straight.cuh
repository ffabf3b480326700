#pragma once
// Both GEMMs of a batch's experts in one persistent launch, rows as wgmma's M: for segments of some
// 64 rows and more. Weights and rows as kernels/cuda/sm90_geometry.hpp lays them out, row tiles of
// 128 rows as the grouping step left them in device memory. A block computes units of 128 rows x
// 256 page rows; two warpgroups multiply, three warps serve them. Blocks work in clusters of two
// that load what their units share once. Bound by the tensor cores and, below some 128 rows an
// expert, by reading the weights once.
//
// Sums run in ascending K for every row, whatever its tile: bits of an entry's row depend on no
// other row and not on the number of blocks.
//
// Thread: the grid.

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/sm90_straight_copies.cuh"
#include "kernels/cuda/sm90_straight_math.cuh"
#include "kernels/cuda/sm90_straight_shared.cuh"
#include "kernels/cuda/sm90_straight_walk.cuh"

namespace moetier::kernels::cuda::straight {

enum class role : std::uint32_t { copy = k_straight_math_warps, walk, store };  // by warp

// 384 threads leave the compiler 168 registers each; what the serving warps give up, the math warps
// take.
inline constexpr std::uint32_t k_math_registers = 224;
inline constexpr std::uint32_t k_serving_registers = 56;

// The last block to leave clears every counter that the launch used.
__device__ __forceinline__ void clear_counters(const expert_gemm_args& args, std::uint32_t lane) {
  std::uint32_t left = 0;
  if (lane == 0) left = ptx::add_acquire_release(args.counters + gemm_counters::blocks_left, 1);
  if (__shfl_sync(0xffffffffu, left, 0) != gridDim.x - 1) return;
  const std::uint32_t used = gemm_counters::first_tile + args.tiles.header->tiles;
  for (std::uint32_t i = lane; i < used; i += 32) args.counters[i] = 0;
}

// Requires: plan_straight()'s grid, threads and shared memory.
template <wgmma::gemm_number Number>
__global__ void __cluster_dims__(k_straight_cluster, 1, 1) __launch_bounds__(k_straight_threads, 1)
    straight_kernel(const __grid_constant__ expert_gemm_args args) {
  extern __shared__ __align__(1024) std::byte block_memory[];
  auto& shared = *reinterpret_cast<block_shared<Number>*>(block_memory);
  const std::uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t rank = ptx::cluster_rank();

  // Barriers, then everything that the grids before wrote.
  if (threadIdx.x == 0) init_barriers(shared);
  ptx::cluster_sync();
  ptx::let_next_grid_start();
  ptx::wait_for_previous_grid();

  // Roles.
  if (warp >= k_straight_math_warps) {
    ptx::give_registers<k_serving_registers>();
    if (warp == static_cast<std::uint32_t>(role::copy)) {
      if (lane == 0) fill_stages(args, shared, rank);
    } else if (warp == static_cast<std::uint32_t>(role::walk)) {
      walk_units(args, shared, rank, lane);
    } else if (warp == static_cast<std::uint32_t>(role::store)) {
      if (lane == 0) store_intermediates(args, shared);
    }
    __syncwarp();
  } else {
    ptx::take_registers<k_math_registers>();
    math_warpgroup<Number>(args, shared, warp / 4, {warp % 4, lane}).run();
  }

  // Nobody of the cluster touches the other's memory any more, nobody of this block a counter.
  ptx::cluster_sync();
  if (warp == static_cast<std::uint32_t>(role::walk)) clear_counters(args, lane);
}

}  // namespace moetier::kernels::cuda::straight
