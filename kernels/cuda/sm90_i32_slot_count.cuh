#pragma once
// Counts entries per local slot on the device. Each block counts its share of the entries in shared
// memory and adds its table to the result once, so a hot slot costs shared-memory atomics and not
// global ones. Integers only: the result does not depend on the order. Bound by reading 4 bytes an
// entry.

#include <cstdint>

#include "kernels/reference/slot_count.hpp"

namespace moetier::kernels::cuda {

// Requires: blockDim.x threads in one dimension, slot_count * 4 bytes of dynamic shared memory,
// counts and bad_entries zeroed.
__global__ void slot_count_kernel(const slot_count_args args) {
  extern __shared__ std::uint32_t block_counts[];
  __shared__ std::uint32_t block_bad;

  // Clear the block's table.
  for (std::uint32_t s = threadIdx.x; s < args.slot_count; s += blockDim.x) block_counts[s] = 0;
  if (threadIdx.x == 0) block_bad = 0;
  __syncthreads();

  // Count this block's entries: a grid-stride loop, neighbours read neighbouring entries. 64 bits,
  // since the last stride may pass the end of 32.
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.entry_count;
       i += stride) {
    const std::int32_t slot = args.slots[i];
    if (slot == -1) continue;
    if (slot < 0 || static_cast<std::uint32_t>(slot) >= args.slot_count) {
      atomicAdd(&block_bad, 1u);
    } else {
      atomicAdd(&block_counts[slot], 1u);
    }
  }
  __syncthreads();

  // Add what is not zero to the result.
  for (std::uint32_t s = threadIdx.x; s < args.slot_count; s += blockDim.x) {
    if (block_counts[s] != 0) atomicAdd(&args.counts[s], block_counts[s]);
  }
  if (threadIdx.x == 0 && block_bad != 0) atomicAdd(args.bad_entries, block_bad);
}

}  // namespace moetier::kernels::cuda
