#pragma once
// The math warpgroups of a ladder block: warpgroup w multiplies strip w of each unit, two halves of
// 64 page rows as wgmma's M, with the tile's rows as its N. The number of groups of eight rows is a
// template argument, so that N is as small as the rows allow and accumulators stay in registers.
//
// Sums leave the registers once a chunk of K and meet in the staging tile, in ascending chunks;
// a thread always adds to what it stored itself.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sm90_ladder_block.cuh"
#include "kernels/cuda/sm90_wgmma.cuh"

namespace moetier::kernels::cuda::ladder {

inline constexpr int k_halves = 2;  // of a strip
inline constexpr int k_slices = 4;  // of 32 bytes of K, in a block

// The sums of one thread: element i as wgmma orders them, for both halves.
template <int Groups>
struct unit_sums {
  static constexpr int k_count = 4 * Groups;
  float at[k_halves][k_count];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int h = 0; h < k_halves; ++h)
#pragma unroll
      for (int i = 0; i < k_count; ++i) at[h][i] = 0.0F;
  }
  __device__ __forceinline__ void keep() {
#pragma unroll
    for (int h = 0; h < k_halves; ++h) wgmma::keep(at[h]);
  }
  // To, or onto, the staging tile from this thread's first element.
  template <bool Add>
  __device__ __forceinline__ void stage(float* first) const {
#pragma unroll
    for (int h = 0; h < k_halves; ++h)
#pragma unroll
      for (int i = 0; i < k_count; ++i) {
        float& to =
            first[(8 * (i / 4) + (i & 1)) * k_ladder_staging_pitch + h * 64 + ((i & 2) ? 8 : 0)];
        to = Add ? to + at[h][i] : at[h][i];
      }
  }
};

// Multiplies the block of K in `stage` into `sums`; ends with the products complete.
template <class Number, int Groups>
__device__ __forceinline__ void multiply_stage(unit_sums<Groups>& sums, std::uint32_t stage,
                                               std::uint32_t strip, std::uint32_t accumulate) {
  const std::uint64_t weights = wgmma::descriptor(stage + strip * k_tile_bytes);
  const std::uint64_t rows = wgmma::descriptor(stage + k_unit_strips * k_tile_bytes);
  wgmma::fence();
  // The halves in turn: their sums do not wait for each other.
#pragma unroll
  for (int slice = 0; slice < k_slices; ++slice)
#pragma unroll
    for (int h = 0; h < k_halves; ++h)
      Number::multiply(sums.at[h],
                       weights + h * wgmma::k_half_tile_step + slice * wgmma::k_slice_step,
                       rows + slice * wgmma::k_slice_step, slice > 0 ? 1u : accumulate);
  wgmma::commit();
}

// Sums of the tensor core, scaled, onto f32 sums: what "promoted" means. Element i & 2 tells the
// lower eight page rows of sixteen from the upper, which in FC1 are gates and ups.
template <int Groups>
__device__ __forceinline__ void promote(unit_sums<Groups>& sums, const unit_sums<Groups>& products,
                                        const float2 (&row_scales)[Groups], float lower,
                                        float upper) {
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    const float scales[4] = {lower * row_scales[g].x, lower * row_scales[g].y,
                             upper * row_scales[g].x, upper * row_scales[g].y};
#pragma unroll
    for (int h = 0; h < k_halves; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums.at[h][4 * g + i] = fmaf(products.at[h][4 * g + i], scales[i], sums.at[h][4 * g + i]);
  }
}

template <class Number, int Groups>
__device__ __forceinline__ void multiply_unit(const block& b, const ladder_unit& unit,
                                              std::uint32_t q, std::uint32_t count,
                                              std::uint32_t strip, ring_place& place) {
  ladder_shared& s = b.shared();
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t warp = threadIdx.x / 32 % 4;
  const std::uint32_t column = 2 * (lane % 4);  // of each group of eight rows, and the next
  float* const first =
      b.staging() + column * k_ladder_staging_pitch + strip * k_tile_rows + warp * 16 + lane / 4;

  // One row of weight scales for the lower eight page rows of sixteen, one for the upper.
  const bool fc1 = unit.phase == ladder_phase::fc1;
  const float* lower = nullptr;
  const float* upper = nullptr;
  if constexpr (Number::promoted) {
    const auto* scales = reinterpret_cast<const float*>(b.scales(q));
    lower = fc1 ? scales : scales + strip * b.args.layout.scale_pitch2;
    upper = fc1 ? scales + b.args.layout.scale_pitch1 : lower;
  }

  unit_sums<Groups> sums;
  unit_sums<Groups> products;  // promoted formats only
  sums.clear();
  products.clear();
  std::uint32_t chunk_left = unit.chunk_blocks;
  bool staged = false;
  for (std::uint32_t k = unit.first_block; k < unit.end_block; ++k) {
    // Multiply one stage and hand it back.
    ptx::wait(barrier(s.stage_full[place.stage]), place.parity);
    const std::byte* stage = b.stage(place.stage);
    if constexpr (Number::promoted) {
      multiply_stage<Number>(products, ptx::shared_address(stage), strip, 0);
      const auto* scales_at = reinterpret_cast<const float*>(stage + k_unit_strips * k_tile_bytes +
                                                             Groups * k_group_code_bytes);
      float2 row_scales[Groups];
#pragma unroll
      for (int g = 0; g < Groups; ++g)
        row_scales[g] = *reinterpret_cast<const float2*>(scales_at + 8 * g + column);
      const float lower_scale = lower[k];
      const float upper_scale = upper[k];
      products.keep();
      wgmma::wait<0>();
      products.keep();
      if (lane == 0) ptx::arrive(barrier(s.stage_free[place.stage]));
      promote(sums, products, row_scales, lower_scale, upper_scale);
    } else {
      multiply_stage<Number>(sums, ptx::shared_address(stage), strip,
                             chunk_left == unit.chunk_blocks ? 0u : 1u);
      sums.keep();
      wgmma::wait<0>();
      sums.keep();
      if (lane == 0) ptx::arrive(barrier(s.stage_free[place.stage]));
    }
    place.advance(b.launch.stages);

    // At the end of a chunk its sums go to the staging tile, once the epilogue has left it.
    if (--chunk_left == 0 || k + 1 == unit.end_block) {
      chunk_left = unit.chunk_blocks;
      if (staged) {
        sums.template stage<true>(first);
      } else {
        ptx::wait(barrier(s.staging_free), (count & 1u) ^ 1u);
        sums.template stage<false>(first);
        staged = true;
      }
      if constexpr (Number::promoted) sums.clear();
    }
  }
}

// A strip that the last pair does not have: stages pass by. It waits for the staging tile as the
// other strip does, or it could announce the sums of a later unit before those of this one.
__device__ __forceinline__ void skip_unit(const block& b, const ladder_unit& unit,
                                          std::uint32_t count, ring_place& place) {
  ladder_shared& s = b.shared();
  for (std::uint32_t k = unit.first_block; k < unit.end_block; ++k) {
    ptx::wait(barrier(s.stage_full[place.stage]), place.parity);
    if (threadIdx.x % 32 == 0) ptx::arrive(barrier(s.stage_free[place.stage]));
    place.advance(b.launch.stages);
  }
  ptx::wait(barrier(s.staging_free), (count & 1u) ^ 1u);
}

template <class Number>
__device__ __forceinline__ void multiply(const block& b) {
  ladder_shared& s = b.shared();
  const std::uint32_t strip = threadIdx.x / 128;
  ring_place place;
  for (std::uint32_t count = 0;; ++count) {
    const std::uint32_t q = record_of(count);
    ptx::wait(barrier(s.record_full[q]), record_parity(count));
    const ladder_unit unit = s.records[q].unit;
    if (unit.phase == ladder_phase::none) return;
    if (strip < unit.strips) {
      switch (s.records[q].tile.groups) {
        case 1: multiply_unit<Number, 1>(b, unit, q, count, strip, place); break;
        case 2: multiply_unit<Number, 2>(b, unit, q, count, strip, place); break;
        case 3: multiply_unit<Number, 3>(b, unit, q, count, strip, place); break;
        case 4: multiply_unit<Number, 4>(b, unit, q, count, strip, place); break;
        case 5: multiply_unit<Number, 5>(b, unit, q, count, strip, place); break;
        case 6: multiply_unit<Number, 6>(b, unit, q, count, strip, place); break;
        case 7: multiply_unit<Number, 7>(b, unit, q, count, strip, place); break;
        default: multiply_unit<Number, 8>(b, unit, q, count, strip, place); break;
      }
    } else {
      skip_unit(b, unit, count, place);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      ptx::arrive(barrier(s.record_free[q]));
      ptx::arrive(barrier(s.staging_full));
    }
  }
}

}  // namespace moetier::kernels::cuda::ladder
