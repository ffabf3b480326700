#pragma once
// The main loop of a math warpgroup: 64 rows of a tile times one or two strips, over all blocks of
// K. Two strips when the tile has more than 64 rows: the warpgroups share the strips. One strip
// otherwise: the warpgroups share the rows, so that a short tile costs half.
//
// fp8: the sums of each block leave the tensor core and are added in f32, times both scales; the
// warpgroups run half a block apart, so that one adds while the other multiplies. bf16: sums stay
// where they are. The order over K is ascending for every tile, hence bits do not depend on it.
//
// Thread: one warpgroup.

#include <cstddef>

#include "kernels/cuda/sm90_straight_shared.cuh"

namespace moetier::kernels::cuda::straight {

// What a warpgroup computes of a unit: 64 rows times one or two strips.
struct share {
  std::uint32_t first_row;  // of the tile: 0 or 64
  std::uint32_t strip;      // first of the unit's: 0 or 1
  bool both;                // strips
};

// Sums of a share in a thread: 64 of its first strip, 64 of the second where it has both.
using sums = float[128];
__device__ __forceinline__ float (&first_strip(sums& totals))[64] {
  return reinterpret_cast<float(&)[64]>(totals);
}

// Where a math warp's operands lie and how it hands stages back.
template <wgmma::gemm_number Number>
struct stage_reader {
  using shared_type = block_shared<Number>;
  using stage = typename shared_type::stage;
  static constexpr std::uint32_t k_stage_step = sizeof(stage) / 16;  // in descriptors
  static constexpr std::uint32_t k_strip_step = k_tile_bytes / 16;
  static constexpr std::uint32_t k_rows_step = k_unit_strips * k_tile_bytes / 16;

  stage_ring full;
  std::uint32_t empty;       // barrier of stage 0, in the block that this lane tells
  std::uint32_t descriptor;  // low word, of stage 0
  std::uint32_t stages;      // address

  // Lanes 0 and 1 tell one block of the cluster each.
  __device__ __forceinline__ stage_reader(shared_type& shared, std::uint32_t lane)
      : full{ptx::shared_address(shared.stage_full), 0},
        empty(ptx::at_rank(ptx::shared_address(shared.stage_empty), lane % k_straight_cluster)),
        descriptor(
            static_cast<std::uint32_t>(wgmma::descriptor(ptx::shared_address(shared.stages)))),
        stages(ptx::shared_address(shared.stages)) {}

  __device__ __forceinline__ void release(std::uint32_t s, bool teller) {
    if (teller) ptx::arrive_at_rank(empty + s * 8);
    full.pass(s);
  }
  // Low words of the share's operands in stage 0.
  __device__ __forceinline__ std::uint32_t rows_of(const share& part) const {
    return descriptor + k_rows_step + part.first_row * (k_tile_row_bytes / 16);
  }
  __device__ __forceinline__ std::uint32_t weights_of(const share& part) const {
    return descriptor + part.strip * k_strip_step;
  }
};

// One 128-byte block of K.
template <wgmma::gemm_number Number, int Count>
__device__ __forceinline__ void multiply_stage(float (&d)[Count], std::uint32_t rows,
                                               std::uint32_t weights, std::uint32_t accumulate) {
#pragma unroll
  for (std::uint32_t slice = 0; slice < 4; ++slice)
    Number::multiply(d, wgmma::descriptor_from(rows + slice * 2),
                     wgmma::descriptor_from(weights + slice * 2), slice > 0 ? 1u : accumulate);
}

__device__ __forceinline__ float load_f32(std::uint32_t address) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address) : "memory");
  return v;
}

// fp8. Requires: totals of zeros. `scales` = of the unit's blocks; `row_scales` = address of this
// thread's first row's scale in stage 0; `announces` = the other warpgroup waits for the first half
// block.
template <int Strips>
__device__ __forceinline__ void sum_promoted(sums& totals, stage_reader<wgmma::e4m3>& reader,
                                             const share& part, std::uint32_t blocks,
                                             const scale_pairs* scales, std::uint32_t row_scales,
                                             bool teller, bool announces) {
  using stages = stage_reader<wgmma::e4m3>;
  const std::uint32_t rows = reader.rows_of(part);
  const std::uint32_t weights = reader.weights_of(part);
  reader.full.wait(0);
#pragma unroll 1
  for (std::uint32_t k0 = 0; k0 < blocks; k0 += k_straight_stages) {
#pragma unroll
    for (std::uint32_t s = 0; s < k_straight_stages; ++s) {
      const std::uint32_t k = k0 + s;
      if (k >= blocks) break;
      float row_scale[2];
#pragma unroll
      for (int strip = 0; strip < Strips; ++strip) {
        float d[64];
        wgmma::fence();
        multiply_stage<wgmma::e4m3>(
            d, rows + s * stages::k_stage_step,
            weights + s * stages::k_stage_step + strip * stages::k_strip_step, 0);
        wgmma::commit();
        // While they run: this block's scales, and the next block's arrival.
        if (strip == 0) {
          const std::uint32_t at =
              row_scales + s * static_cast<std::uint32_t>(sizeof(stages::stage));
          row_scale[0] = load_f32(at);
          row_scale[1] = load_f32(at + k_group_scale_bytes);
        }
        const float2 pair = scales[k].strip[part.strip + strip];
        if (strip == Strips - 1 && k + 1 < blocks) {
          if (s + 1 == k_straight_stages) {
            reader.full.wait(0);
          } else {
            reader.full.wait(s + 1);
          }
        }
        wgmma::keep(d);
        wgmma::wait<0>();
        if (announces && strip == 0 && k == 0) ptx::named_arrive(k_stagger_barrier, 256);
        wgmma::keep(d);
        if (strip == Strips - 1) {
          __syncwarp();  // all lanes have their row scales
          reader.release(s, teller);
        }
        // Promote.
        const float factor[2][2] = {{row_scale[0] * pair.x, row_scale[0] * pair.y},
                                    {row_scale[1] * pair.x, row_scale[1] * pair.y}};
#pragma unroll
        for (int i = 0; i < 64; ++i)
          totals[64 * strip + i] += d[i] * factor[i >> 1 & 1][i >> 2 & 1];
      }
    }
  }
}

// bf16. Requires: totals of zeros. A stage goes back once the next block's instructions are queued
// and its own are done.
template <int Strips>
__device__ __forceinline__ void sum_in_place(float (&totals)[64 * Strips],
                                             stage_reader<wgmma::bf16>& reader, const share& part,
                                             std::uint32_t blocks, bool teller) {
  using stages = stage_reader<wgmma::bf16>;
  const std::uint32_t rows = reader.rows_of(part);
  const std::uint32_t weights = reader.weights_of(part);
  std::uint32_t last = 0;
#pragma unroll 1
  for (std::uint32_t k0 = 0; k0 < blocks; k0 += k_straight_stages) {
#pragma unroll
    for (std::uint32_t s = 0; s < k_straight_stages; ++s) {
      const std::uint32_t k = k0 + s;
      if (k >= blocks) break;
      reader.full.wait(s);
      wgmma::fence();
      multiply_stage<wgmma::bf16>(totals, rows + s * stages::k_stage_step,
                                  weights + s * stages::k_stage_step, 1);
      wgmma::commit();
      wgmma::wait<1>();
      if (k > 0) reader.release((s + k_straight_stages - 1) % k_straight_stages, teller);
      last = s;
    }
  }
  wgmma::wait<0>();
  wgmma::keep(totals);
  reader.release(last, teller);
}

// A share that does not exist: pass the stages on.
template <wgmma::gemm_number Number>
__device__ __forceinline__ void skip_stages(stage_reader<Number>& reader, std::uint32_t blocks,
                                            bool teller) {
  for (std::uint32_t k = 0; k < blocks; ++k) {
    const std::uint32_t s = k % k_straight_stages;
    reader.full.wait(s);
    __syncwarp();
    reader.release(s, teller);
  }
}

}  // namespace moetier::kernels::cuda::straight
