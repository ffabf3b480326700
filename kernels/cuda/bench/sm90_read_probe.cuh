#pragma once
// Reads FC1's bytes of all active slots, then FC2's: each block a contiguous run of tiles of
// either, through a ring of bulk copies of 16 KB that one thread issues, evict-first. A place of
// the ring is refilled as soon as its tile has landed, so 192 KB are in flight on each
// multiprocessor. Bound by device memory: 4.5 TB/s on an H200.

#include <cstdint>

#include "kernels/cuda/bench/sm90_read_probe.hpp"
#include "kernels/cuda/sm90_geometry.hpp"
#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda::bench {

inline constexpr std::uint32_t k_probe_stages = 12;
inline constexpr std::uint32_t k_probe_threads = 32;

struct probe_shared {
  std::byte tiles[k_probe_stages][k_tile_bytes];
  std::uint64_t landed[k_probe_stages];
};
inline constexpr std::uint32_t k_probe_shared_bytes = sizeof(probe_shared) + 128;

// This block's tiles, in order: number i of FC1's run, then of FC2's.
class probe_run {
 public:
  __device__ probe_run(const read_probe_args& args, std::uint32_t slots)
      : args_(args), first_of_(args.fc1_tiles, slots), second_of_(args.fc2_tiles, slots) {}

  __device__ std::uint64_t count() const { return first_of_.count + second_of_.count; }
  __device__ const std::byte* tile(std::uint64_t i) const {
    return i < first_of_.count
               ? at(args_.fc1, args_.fc1_tiles, first_of_.begin + i)
               : at(args_.fc2, args_.fc2_tiles, second_of_.begin + i - first_of_.count);
  }

 private:
  struct share {
    std::uint64_t begin;
    std::uint64_t count;
    __device__ share(std::uint64_t tiles, std::uint32_t slots)
        : begin(tiles * slots * blockIdx.x / gridDim.x),
          count(tiles * slots * (blockIdx.x + 1) / gridDim.x - begin) {}
  };

  __device__ const std::byte* at(std::uint64_t matrix, std::uint64_t tiles, std::uint64_t i) const {
    const std::uint32_t slot = args_.active[1 + i / tiles];
    return args_.pages[slot] + matrix + i % tiles * k_tile_bytes;
  }

  const read_probe_args& args_;
  share first_of_;
  share second_of_;
};

// Requires: k_probe_shared_bytes of dynamic shared memory.
__global__ void __launch_bounds__(k_probe_threads, 1)
    read_probe_kernel(const __grid_constant__ read_probe_args args) {
  extern __shared__ std::byte raw[];
  auto& s = *reinterpret_cast<probe_shared*>((reinterpret_cast<std::uintptr_t>(raw) + 127) &
                                             ~std::uintptr_t{127});
  if (threadIdx.x != 0) return;

  // Barriers, one arrival each: the copy's own bytes.
  for (std::uint32_t i = 0; i < k_probe_stages; ++i)
    ptx::barrier_init(ptx::shared_address(&s.landed[i]), 1);
  ptx::fence_barrier_init();

  // Fill the ring, then take a tile and ask for the one a ring further.
  const std::uint64_t policy = ptx::policy_evict_first();
  const probe_run run(args, args.active[0]);
  const auto ask = [&](std::uint64_t i, std::uint32_t stage) {
    const std::uint32_t landed = ptx::shared_address(&s.landed[stage]);
    ptx::arrive_expecting(landed, k_tile_bytes);
    ptx::copy_in(ptx::shared_address(s.tiles[stage]), run.tile(i), k_tile_bytes, landed, policy);
  };
  for (std::uint32_t i = 0; i < k_probe_stages && i < run.count(); ++i) ask(i, i);
  std::uint32_t seen = 0;
  std::uint32_t stage = 0;
  std::uint32_t parity = 0;
  for (std::uint64_t i = 0; i < run.count(); ++i) {
    ptx::wait(ptx::shared_address(&s.landed[stage]), parity);
    seen += *reinterpret_cast<const volatile std::uint32_t*>(s.tiles[stage]);
    if (i + k_probe_stages < run.count()) ask(i + k_probe_stages, stage);
    if (++stage == k_probe_stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  args.sink[blockIdx.x] = seen;
}

}  // namespace moetier::kernels::cuda::bench
