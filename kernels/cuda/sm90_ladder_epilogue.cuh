#pragma once
// The two epilogue warps of a ladder block: each takes every other row of a unit's sums from the
// staging tile while the math warps go on. FC1: bias, activation, and the row's next activations as
// codes or bf16, into tiles again. FC2: bias, router weight, and the entry's output row. Sums of a
// split product go to memory first; the warp that comes last of its parts adds them all, in
// ascending chunks, so the bits are those of a whole unit.

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/sm90_ladder_block.cuh"

namespace moetier::kernels::cuda::ladder {

// Output of more bytes than this leaves L2 first; less is about to be summed from there.
inline constexpr std::uint64_t k_kept_output_bytes = 4u << 20;

__device__ __forceinline__ float4 load_f32x4(const std::byte* from) {
  return __ldg(reinterpret_cast<const float4*>(from));
}
__device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ uint2 to_bf16(float4 v) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y);
  const __nv_bfloat162 high = __floats2bfloat162_rn(v.z, v.w);
  return make_uint2(*reinterpret_cast<const std::uint32_t*>(&low),
                    *reinterpret_cast<const std::uint32_t*>(&high));
}

// ---- activation
// ----------------------------------------------------------------------------------

struct activation_constants {
  float alpha = 0;
  float beta = 0;
  float limit = 0;  // +inf = no clamp
};

// Comparisons keep NaN where min and max would drop it.
__device__ __forceinline__ float activate(gemm_activation kind, const activation_constants& c,
                                          float g, float u) {
  g = g > c.limit ? c.limit : g;
  u = u > c.limit ? c.limit : u;
  u = u < -c.limit ? -c.limit : u;
  const bool biased = kind == gemm_activation::swiglu_bias;
  const float slope = biased ? c.alpha : 1.0F;
  const float shifted = biased ? u + c.beta : u;
  return __fdividef(g, 1.0F + __expf(-slope * g)) * shifted;
}
__device__ __forceinline__ float4 activate(gemm_activation kind, const activation_constants& c,
                                           float4 g, float4 u) {
  return make_float4(activate(kind, c, g.x, u.x), activate(kind, c, g.y, u.y),
                     activate(kind, c, g.z, u.z), activate(kind, c, g.w, u.w));
}

// ---- the row quantiser, one warp a block of 128 (rules: kernels/quant/row_quantiser.hpp)
// ------------------------------------------------------------------------------------

struct quantised {
  std::uint32_t codes = 0;  // of this lane's four columns
  float scale = 1;
};
__device__ __forceinline__ std::uint32_t magnitude(float v) {
  return __float_as_uint(v) & 0x7fffffffu;  // compares like the value, NaN above all
}
__device__ __forceinline__ quantised quantise(float4 v) {
  const std::uint32_t most = __reduce_max_sync(
      ~0u, max(max(magnitude(v.x), magnitude(v.y)), max(magnitude(v.z), magnitude(v.w))));
  // most / 448, correctly rounded wherever the quotient is a normal number (all significands were
  // tried), without the branch of a full division: rows then overlap.
  constexpr float k_reciprocal = 1.0F / 448.0F;
  const float quotient = __uint_as_float(most) * k_reciprocal;
  const float rest = fmaf(-quotient, 448.0F, __uint_as_float(most));
  const float scale = fmaxf(fmaf(rest, k_reciprocal, quotient), 0x1p-126F);
  const float inverse = __frcp_rn(scale);
  const auto pair = [inverse](float low, float high) -> std::uint32_t {
    return __nv_cvt_float2_to_fp8x2(make_float2(low * inverse, high * inverse), __NV_SATFINITE,
                                    __NV_E4M3);
  };
  const std::uint32_t codes = pair(v.x, v.y) | pair(v.z, v.w) << 16;
  const bool finite = most < 0x7f800000u;
  return {.codes = most == 0 ? 0u
                   : finite  ? codes
                             : 0x7f7f7f7fu,
          .scale = most == 0 ? 1.0F
                   : finite  ? scale
                             : __uint_as_float(0x7fc00000u)};
}

// ---- sums of a split unit
// ------------------------------------------------------------------------

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
