#pragma once
// The sums of a split unit: each chunk of K leaves its own among the partials, and the warp that
// comes last of them adds all up, in ascending chunks, so the bits are those of a whole unit. No
// block waits for another one here.

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sm90_ladder_block.cuh"

namespace moetier::kernels::cuda::ladder {

__device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Leaves this warp's rows of the chunk among the partials. True in the warp that comes last: its
// rows in the staging tile are then the sums over all chunks.
__device__ __forceinline__ bool gather_parts(const block& b, const ladder_record& r,
                                             std::uint32_t warp, std::uint32_t lane) {
  const ladder_unit& unit = r.unit;
  const ladder_product& product = b.product(unit.phase);
  const bool fc1 = unit.phase == ladder_phase::fc1;
  const auto rows = static_cast<std::uint32_t>(r.tile.rows);
  const std::uint32_t columns = unit.strips * k_tile_rows;
  const std::uint64_t chunk_floats =
      std::uint64_t{static_cast<std::uint32_t>(r.tile.groups)} * k_group_rows * k_unit_rows;
  float* const own = b.args.partials +
                     (fc1 ? 0
                          : b.launch.fc1.k.chunks * std::uint64_t{b.launch.split_groups} *
                                k_group_rows * k_unit_rows) +
                     partial_group(product, unit, r.tile) * k_group_rows * k_unit_rows;
  const float* const all = own - unit.chunk * chunk_floats;

  for (std::uint32_t q = warp; q < rows; q += k_ladder_epilogue_warps)
    for (std::uint32_t c = 4 * lane; c < columns; c += 128)
      __stcg(reinterpret_cast<float4*>(own + q * k_unit_rows + c),
             *reinterpret_cast<const float4*>(b.staging() + q * k_ladder_staging_pitch + c));
  __syncwarp();
  std::uint32_t before = 0;
  if (lane == 0) {
    std::uint32_t* const arrived =
        b.args.counters + (fc1 ? b.walk.fc1_split_counters : b.walk.fc2_split_counters) +
        (unit.tile * product.pairs + unit.pair) * k_ladder_epilogue_warps + warp;
    before = ptx::add_acquire_release(arrived, 1);
    if (before + 1 == unit.parts) *arrived = 0;  // nobody else comes
  }
  before = __shfl_sync(~0u, before, 0);
  if (before + 1 != unit.parts) return false;

  for (std::uint32_t q = warp; q < rows; q += k_ladder_epilogue_warps) {
    // All loads of a row before the first sum: one latency instead of many.
    float4 parts[k_unit_strips][k_ladder_chunks_max];
#pragma unroll
    for (std::uint32_t strip = 0; strip < k_unit_strips; ++strip)
#pragma unroll
      for (std::uint32_t i = 0; i < k_ladder_chunks_max; ++i)
        if (i < unit.parts && strip < unit.strips)
          parts[strip][i] = __ldcg(reinterpret_cast<const float4*>(
              all + i * chunk_floats + q * k_unit_rows + strip * k_tile_rows + 4 * lane));
#pragma unroll
    for (std::uint32_t strip = 0; strip < k_unit_strips; ++strip) {
      if (strip >= unit.strips) continue;
      float4 sum = parts[strip][0];
#pragma unroll
      for (std::uint32_t i = 1; i < k_ladder_chunks_max; ++i)
        if (i < unit.parts) sum = plus(sum, parts[strip][i]);
      *reinterpret_cast<float4*>(b.staging() + q * k_ladder_staging_pitch + strip * k_tile_rows +
                                 4 * lane) = sum;
    }
  }
  __syncwarp();
  return true;
}

}  // namespace moetier::kernels::cuda::ladder
