#pragma once
// Shared memory of one block of the straight kernel, and who waits for whom in it:
//
//   stages     copy warps -> math warps, a ring; every unit starts at stage 0, so that its
//   addresses
//              are constants. The copy warps of a cluster's blocks fill each other's stages, so a
//              stage is empty once the math warps of both have left theirs.
//   units      unit walk -> copy warp, math warps, store warp: what to do, with all that belongs to
//              it but the operands
//   numbers    unit walk of the cluster's first block -> that of the second
//   staging    math warps -> store warp: FC1's outcome, as it will lie in `mid`
//
// Thread: the block (stages and numbers: the cluster).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sm90_geometry.hpp"
#include "kernels/cuda/sm90_ptx.cuh"
#include "kernels/cuda/sm90_wgmma.cuh"
#include "kernels/cuda/straight_launch.hpp"
#include "kernels/cuda/straight_order.hpp"

namespace moetier::kernels::cuda::straight {

template <wgmma::gemm_number Number>
inline constexpr gemm_format k_format = Number::promoted ? gemm_format::fp8 : gemm_format::bf16;

// 128 rows x 256 page rows of one product: a row tile and a pair of strips.
struct unit {
  unit_kind kind;
  std::uint32_t tile;
  std::uint32_t slot;
  std::uint32_t groups;
  std::uint32_t rows;
  std::uint32_t strips;       // 2; 1 at the end of a matrix with an odd number of them; idle: 0
  std::uint32_t first_strip;  // even
  std::uint32_t blocks;       // of K
  const std::byte* weights;   // first tile of the first strip
  const std::byte* rows_in;   // first block of the tile's activations
  std::byte* mid;             // FC1: where its outcome goes
  const float* bias;          // of the unit's first page row, or nullptr
  float alpha;                // of the activation
  float beta;
  float limit;
  unit_sharing sharing;
  bool reads_mid;  // its rows are FC1's outcome
  bool reread;     // its weights are needed again soon
};
static_assert(sizeof(unit) == 80);

// The weight scales of one block of K: in a strip's accumulators fragments of 8 columns belong in
// turn to gate and up (FC1; FC2: twice the same).
struct scale_pairs {
  float2 strip[k_unit_strips];
};

template <wgmma::gemm_number Number>
struct block_shared {
  static constexpr gemm_format format = k_format<Number>;
  struct stage {
    std::byte weights[k_unit_strips * k_tile_bytes];
    std::byte rows[straight_stage_bytes(format) - k_unit_strips * k_tile_bytes];
  };
  stage stages[k_straight_stages];
  std::byte staging[straight_staging_bytes(format)];
  scale_pairs scales[k_straight_units][straight_scale_blocks_max(format)];
  unit units[k_straight_units];
  std::int32_t entries[k_straight_units][k_straight_tile_rows];
  float row_weights[k_straight_units][k_straight_tile_rows];
  float row_maxima[2][64];  // of the two halves of an intermediate block
  std::uint32_t numbers[k_straight_numbers];
  std::uint64_t number_full[k_straight_numbers];
  std::uint64_t stage_full[k_straight_stages];
  std::uint64_t stage_empty[k_straight_stages];
  std::uint64_t unit_full[k_straight_units];
  std::uint64_t unit_empty[k_straight_units];
  std::uint64_t staged;
  std::uint64_t staging_free;
};
static_assert(sizeof(block_shared<wgmma::e4m3>) == straight_shared_bytes(gemm_format::fp8));
static_assert(sizeof(block_shared<wgmma::bf16>) == straight_shared_bytes(gemm_format::bf16));
static_assert(sizeof(block_shared<wgmma::e4m3>::stage) % 1024 == 0);
static_assert(sizeof(block_shared<wgmma::bf16>::stage) % 1024 == 0);

// Named barriers; 0 is __syncthreads'.
inline constexpr std::uint32_t k_stagger_barrier = 1;
inline constexpr std::uint32_t k_pair_barrier = 2;  // to 5: warps w and w + 4

// Requires: one thread calls it, before any other touches the block's shared memory.
template <wgmma::gemm_number Number>
__device__ __forceinline__ void init_barriers(block_shared<Number>& shared) {
  for (std::uint32_t s = 0; s < k_straight_stages; ++s) {
    ptx::barrier_init(ptx::shared_address(&shared.stage_full[s]), 1);
    ptx::barrier_init(ptx::shared_address(&shared.stage_empty[s]),
                      k_straight_cluster * k_straight_math_warps);
  }
  for (std::uint32_t n = 0; n < k_straight_numbers; ++n)
    ptx::barrier_init(ptx::shared_address(&shared.number_full[n]), 1);
  for (std::uint32_t u = 0; u < k_straight_units; ++u) {
    ptx::barrier_init(ptx::shared_address(&shared.unit_full[u]), 1);
    // Math warps, copy warp, store warp.
    ptx::barrier_init(ptx::shared_address(&shared.unit_empty[u]), k_straight_math_warps + 2);
  }
  ptx::barrier_init(ptx::shared_address(&shared.staged), k_straight_math_warps);
  ptx::barrier_init(ptx::shared_address(&shared.staging_free), 1);
  ptx::fence_barrier_init();
}

// Stage barriers by index, for one side of the ring. Bits of `parity`: what the side's next wait
// for that stage expects.
struct stage_ring {
  std::uint32_t barrier;  // of stage 0
  std::uint32_t parity;

  __device__ __forceinline__ void wait(std::uint32_t stage) const {
    ptx::wait(barrier + stage * 8, parity >> stage & 1u);
  }
  __device__ __forceinline__ void pass(std::uint32_t stage) { parity ^= 1u << stage; }
};

// One side of the queue of units.
struct unit_queue {
  std::uint32_t taken = 0;

  __device__ __forceinline__ std::uint32_t place() const { return taken % k_straight_units; }
  template <class Shared>
  __device__ __forceinline__ const unit& next(const Shared& shared) const {
    ptx::wait(ptx::shared_address(&shared.unit_full[place()]), taken / k_straight_units & 1u);
    return shared.units[place()];
  }
  template <class Shared>
  __device__ __forceinline__ void give_back(const Shared& shared) {
    ptx::arrive(ptx::shared_address(&shared.unit_empty[place()]));
  }
};

}  // namespace moetier::kernels::cuda::straight
