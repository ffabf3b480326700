#pragma once
// The two epilogue warps of a ladder block: each takes every other row of a unit's sums from the
// staging tile while the math warps go on. FC1: bias, activation, and the row's next activations as
// codes or bf16, into tiles again. FC2: bias, router weight, and the entry's output row. Sums of a
// split product meet first (sm90_ladder_parts.cuh).

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>

#include "kernels/cuda/sm90_ladder_activation.cuh"
#include "kernels/cuda/sm90_ladder_block.cuh"
#include "kernels/cuda/sm90_ladder_parts.cuh"

namespace moetier::kernels::cuda::ladder {

// Output of more bytes than this leaves L2 first; less is about to be summed from there.
inline constexpr std::uint64_t k_kept_output_bytes = 4u << 20;

__device__ __forceinline__ float4 load_f32x4(const std::byte* from) {
  return __ldg(reinterpret_cast<const float4*>(from));
}
__device__ __forceinline__ uint2 to_bf16(float4 v) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y);
  const __nv_bfloat162 high = __floats2bfloat162_rn(v.z, v.w);
  return make_uint2(*reinterpret_cast<const std::uint32_t*>(&low),
                    *reinterpret_cast<const std::uint32_t*>(&high));
}

// ---- FC1
// -----------------------------------------------------------------------------------------

// What one lane needs of a unit of FC1 apart from its sums: four intermediate columns.
struct fc1_columns {
  std::uint32_t page_row = 0;  // of the first gate, in the unit; its up is eight further
  bool exists = true;          // false beyond a lone strip
  float4 gate_bias = {0, 0, 0, 0};
  float4 up_bias = {0, 0, 0, 0};
  activation_constants constants{};
};
__device__ __forceinline__ fc1_columns fc1_columns_of(const block& b, const ladder_record& r,
                                                      std::uint32_t lane) {
  fc1_columns c;
  c.page_row = gate_page_row(4 * lane);
  c.exists = c.page_row < r.unit.strips * k_tile_rows;
  if (b.args.shape.bias && c.exists) {
    const std::byte* bias =
        r.page + b.args.layout.bias1 + (r.unit.pair * k_unit_rows + c.page_row) * 4;
    c.gate_bias = load_f32x4(bias);
    c.up_bias = load_f32x4(bias + 8 * 4);
  }
  const float4 constants = load_f32x4(r.page + b.args.layout.constants);
  c.constants = {.alpha = constants.x, .beta = constants.y, .limit = constants.z};
  return c;
}

template <gemm_format Format>
__device__ __forceinline__ void finish_fc1(const block& b, const ladder_record& r,
                                           const fc1_columns& columns, std::uint32_t warp,
                                           std::uint32_t lane, std::uint64_t policy) {
  const auto rows = static_cast<std::uint32_t>(r.tile.rows);
  const auto groups = static_cast<std::uint32_t>(r.tile.groups);
  const std::uint32_t columns_a_block = columns_of_block(Format);
  const std::uint32_t byte = 4 * lane % columns_a_block * (k_tile_row_bytes / columns_a_block);
  const std::uint64_t block_of_k =
      r.unit.pair * (k_tile_rows / columns_a_block) + 4 * lane / columns_a_block;
  std::byte* const to =
      b.args.mid +
      (std::uint64_t{static_cast<std::uint32_t>(r.tile.first_group)} * b.launch.fc2.k.blocks +
       block_of_k * groups) *
          group_bytes(Format);
#pragma unroll 4
  for (std::uint32_t q = warp; q < rows; q += k_ladder_epilogue_warps) {
    const float* sums = b.staging() + q * k_ladder_staging_pitch + columns.page_row;
    float4 gate = *reinterpret_cast<const float4*>(sums);
    float4 up = *reinterpret_cast<const float4*>(sums + 8);
    if constexpr (Format == gemm_format::bf16) {
      gate = plus(gate, columns.gate_bias);
      up = plus(up, columns.up_bias);
    }
    const float4 v = activate(b.args.activation, columns.constants, gate, up);
    std::byte* const place =
        to + q / k_group_rows * k_group_code_bytes + swizzled(q % k_group_rows, byte);
    if constexpr (Format == gemm_format::fp8) {
      const quantised codes = quantise(v);
      ptx::store(place, codes.codes, policy);
      if (lane == 0)
        ptx::store(to + groups * k_group_code_bytes + q * 4, __float_as_uint(codes.scale), policy);
    } else {
      if (columns.exists) ptx::store(place, to_bf16(v), policy);
    }
  }
}

// ---- FC2
// -----------------------------------------------------------------------------------------

// Four columns of each strip of the unit.
struct fc2_columns {
  std::uint32_t columns = 0;  // of the unit: those beyond the matrix are not written
  float4 bias[k_unit_strips] = {};
};
__device__ __forceinline__ fc2_columns fc2_columns_of(const block& b, const ladder_record& r,
                                                      std::uint32_t lane) {
  fc2_columns c;
  const std::uint32_t first = r.unit.pair * k_unit_rows;
  const std::uint32_t left = b.args.shape.hidden_size - first;
  c.columns = left < k_unit_rows ? left : k_unit_rows;
#pragma unroll
  for (std::uint32_t i = 0; i < k_unit_strips; ++i)
    if (b.args.shape.bias && 4 * lane + i * k_tile_rows < c.columns)
      c.bias[i] =
          load_f32x4(r.page + b.args.layout.bias2 + (first + 4 * lane + i * k_tile_rows) * 4);
  return c;
}

template <gemm_format Format, out_type Type>
__device__ __forceinline__ void finish_fc2(const block& b, const ladder_record& r, std::uint32_t q0,
                                           const fc2_columns& columns, std::uint32_t warp,
                                           std::uint32_t lane, std::uint64_t policy) {
  const auto rows = static_cast<std::uint32_t>(r.tile.rows);
  const std::int32_t* entries = b.shared().entries[q0];
  constexpr std::uint32_t element_bytes = Type == out_type::f32 ? 4 : 2;
  const bool weighted = b.args.weights != nullptr;
  std::byte* const to =
      b.args.out + std::uint64_t{r.unit.pair * k_unit_rows + 4 * lane} * element_bytes;
#pragma unroll 4
  for (std::uint32_t q = warp; q < rows; q += k_ladder_epilogue_warps) {
    const std::int32_t entry = entries[q];
    const bool live = entry >= 0;
    const float weight = weighted && live ? __ldg(b.args.weights + entry) : 1.0F;
    std::byte* const row = to + static_cast<std::uint64_t>(entry) * b.args.out_pitch_bytes;
#pragma unroll
    for (std::uint32_t i = 0; i < k_unit_strips; ++i) {
      const bool exists = 4 * lane + i * k_tile_rows < columns.columns;
      float4 v = *reinterpret_cast<const float4*>(b.staging() + q * k_ladder_staging_pitch +
                                                  4 * lane + i * k_tile_rows);
      if constexpr (Format == gemm_format::bf16) v = plus(v, columns.bias[i]);
      v = make_float4(v.x * weight, v.y * weight, v.z * weight, v.w * weight);
      std::byte* const place = row + i * k_tile_rows * element_bytes;
      if constexpr (Type == out_type::f32) {
        if (live && exists) ptx::store(place, v, policy);
      } else {
        if (live && exists) ptx::store(place, to_bf16(v), policy);
      }
    }
  }
}

// -----------------------------------------------------------------------------------------

template <gemm_format Format>
__device__ __forceinline__ void finish(const block& b, std::uint32_t warp) {
  ladder_shared& s = b.shared();
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint64_t mid_policy = ptx::policy_evict_normal();
  const std::uint64_t out_policy =
      std::uint64_t{b.header.entries} * b.args.out_pitch_bytes > k_kept_output_bytes
          ? ptx::policy_evict_first()
          : ptx::policy_evict_last();
  for (std::uint32_t count = 0;; ++count) {
    const std::uint32_t q = record_of(count);
    ptx::wait(barrier(s.record_full[q]), record_parity(count));
    const ladder_record& r = s.records[q];
    const ladder_phase phase = r.unit.phase;
    if (phase == ladder_phase::none) return;

    // What the page holds is fetched while the sums are still being made.
    fc1_columns fc1;
    fc2_columns fc2;
    if (phase == ladder_phase::fc1) {
      fc1 = fc1_columns_of(b, r, lane);
    } else {
      fc2 = fc2_columns_of(b, r, lane);
    }
    ptx::wait(barrier(s.staging_full), count & 1u);
    const bool complete = r.unit.parts == 1 || gather_parts(b, r, warp, lane);
    if (complete) {
      if (phase == ladder_phase::fc1) {
        finish_fc1<Format>(b, r, fc1, warp, lane, mid_policy);
      } else if (b.args.out_as == out_type::f32) {
        finish_fc2<Format, out_type::f32>(b, r, q, fc2, warp, lane, out_policy);
      } else {
        finish_fc2<Format, out_type::bf16>(b, r, q, fc2, warp, lane, out_policy);
      }
    }
    const std::uint32_t tile = r.unit.tile;
    __syncwarp();
    if (lane == 0) {
      ptx::arrive(barrier(s.staging_free));
      ptx::arrive(barrier(s.record_free[q]));
      if (complete && phase == ladder_phase::fc1) ptx::add_release(b.tile_counter(tile), 1);
    }
  }
}

}  // namespace moetier::kernels::cuda::ladder
