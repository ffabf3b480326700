#pragma once
// What every role of a ladder block is given: arguments, plan, walk and the block's shared memory;
// and the ring's place, which each role that goes round the stages keeps for itself.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/ladder_launch.hpp"
#include "kernels/cuda/ladder_shared.hpp"
#include "kernels/cuda/ladder_walk.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda::ladder {

// A stage of the ring, and the parity of its barrier that a waiter waits for.
struct ring_place {
  std::uint32_t stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance(std::uint32_t stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct block {
  const expert_gemm_args& args;
  const ladder_launch& launch;
  ladder_walk walk;
  tile_header header;
  std::byte* memory;  // shared, at a multiple of 1024

  __device__ __forceinline__ ladder_shared& shared() const {
    return *reinterpret_cast<ladder_shared*>(memory);
  }
  __device__ __forceinline__ const ladder_product& product(ladder_phase phase) const {
    return phase == ladder_phase::fc1 ? launch.fc1 : launch.fc2;
  }
  __device__ __forceinline__ std::byte* scales(std::uint32_t record) const {
    return memory + launch.scales_at + record * launch.scale_bytes;
  }
  __device__ __forceinline__ float* staging() const {
    return reinterpret_cast<float*>(memory + launch.staging_at);
  }
  __device__ __forceinline__ std::byte* stage(std::uint32_t i) const {
    return memory + launch.ring_at + i * launch.stage_bytes;
  }
  // FC1's parts written of a tile.
  __device__ __forceinline__ std::uint32_t* tile_counter(std::uint32_t tile) const {
    return args.counters + gemm_counters::first_tile + tile;
  }
  __device__ __forceinline__ std::uint32_t tile_counter_done() const {
    return launch.fc1.pairs * k_ladder_epilogue_warps;
  }
};

// Unit `count` of a block sits in record count % 4; the barriers of a record turn once a round.
__device__ __forceinline__ std::uint32_t record_of(std::uint32_t count) {
  return count % k_ladder_records;
}
__device__ __forceinline__ std::uint32_t record_parity(std::uint32_t count) {
  return count / k_ladder_records & 1u;
}

__device__ __forceinline__ std::uint32_t barrier(const std::uint64_t& b) {
  return ptx::shared_address(&b);
}

}  // namespace moetier::kernels::cuda::ladder
