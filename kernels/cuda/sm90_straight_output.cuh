#pragma once
// FC2's epilogue in the straight kernel: bias, router weight, then each entry's piece of its output
// row. Places without an entry are not written, columns beyond H neither. Stores take no hint: the
// sum over a row's entries reads them next, and streaming stores made the two together 1 % slower.
//
// Thread: one math warp each.

#include <cuda_bf16.h>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/sm90_straight_intermediate.cuh"

namespace moetier::kernels::cuda::straight {

// The unit's rows by place in its tile.
struct row_map {
  const std::int32_t* entries;
  const float* weights;
};

__device__ __forceinline__ void store_matrices(std::uint32_t to, const std::uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

// How a thread's sums of its two rows leave.
struct row_finish {
  const float* bias;  // of the unit's first page row, or nullptr
  float weight[2];
};

// Fragment f's sums of one row: bias, then router weight.
__device__ __forceinline__ float2 finished(const float* values, int half, const float* bias,
                                           const row_finish& rows) {
  float2 v{values[2 * half], values[2 * half + 1]};
  if (bias != nullptr) {
    const float2 b = __ldg(reinterpret_cast<const float2*>(bias));
    v.x += b.x;
    v.y += b.y;
  }
  return {v.x * rows.weight[half], v.y * rows.weight[half]};
}

// 64 columns: 16 rows x 128 bytes turned in the warp's own 2 KB of staging, so that stores are
// whole 128-byte lines.
__device__ __forceinline__ void write_bf16(const expert_gemm_args& args, const float* values,
                                           const float* bias, const row_finish& finish,
                                           std::byte* turning, const std::int32_t (&entry)[4],
                                           std::uint32_t column, std::uint32_t lane) {
  const std::uint32_t turning_address = ptx::shared_address(turning);
#pragma unroll
  for (int f = 0; f < 8; f += 2) {
    std::uint32_t m[4];
#pragma unroll
    for (int z = 0; z < 4; ++z) {
      const int fragment = f + z / 2;
      const float2 v = finished(values + 4 * fragment, z & 1,
                                bias == nullptr ? bias : bias + 8 * fragment, finish);
      const __nv_bfloat162 pair = __floats2bfloat162_rn(v.x, v.y);
      m[z] = reinterpret_cast<const std::uint32_t&>(pair);
    }
    store_matrices(turning_address + swizzled(lane % 16, (f + lane / 16) * 16), m);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint4 line =
        *reinterpret_cast<const uint4*>(turning + swizzled(i * 4 + lane / 8, lane % 8 * 16));
    if (entry[i] >= 0)
      *reinterpret_cast<uint4*>(args.out +
                                static_cast<std::size_t>(entry[i]) * args.out_pitch_bytes +
                                column * 2 + lane % 8 * 16) = line;
  }
  __syncwarp();
}

// 64 columns straight from the registers: four lanes write 32 bytes.
__device__ __forceinline__ void write_f32(const expert_gemm_args& args, const float* values,
                                          const float* bias, const row_finish& finish,
                                          const std::int32_t (&entry)[2], std::uint32_t column) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (entry[half] < 0) continue;
    auto* const row = reinterpret_cast<float*>(args.out + static_cast<std::size_t>(entry[half]) *
                                                              args.out_pitch_bytes);
#pragma unroll
    for (int f = 0; f < 8; ++f)
      *reinterpret_cast<float2*>(row + column + 8 * f) =
          finished(values + 4 * f, half, bias == nullptr ? bias : bias + 8 * f, finish);
  }
}

// Requires: staging is free (bf16 turns rows in it).
__device__ __forceinline__ void write_output(const expert_gemm_args& args, const unit& of,
                                             const row_map& rows, const sums& totals,
                                             const share& part, const thread_place& at,
                                             std::byte* turning) {
  const std::uint32_t row = part.first_row + at.row();
  const std::uint32_t first_column = (of.first_strip + part.strip) * k_tile_rows;
  const row_finish finish{
      of.bias == nullptr ? nullptr : of.bias + part.strip * k_tile_rows + at.column(),
      {rows.weights[row], rows.weights[row + 8]}};
  std::int32_t line_entry[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    line_entry[i] = rows.entries[part.first_row + at.warp * 16 + i * 4 + at.lane / 8];
  const std::int32_t entry[2] = {rows.entries[row], rows.entries[row + 8]};
#pragma unroll
  for (int piece = 0; piece < 4; ++piece) {
    const std::uint32_t column = first_column + piece * 64;
    if (column >= args.shape.hidden_size || (piece >= 2 && !part.both)) break;
    const float* const values = totals + 32 * piece;
    const float* const bias = finish.bias == nullptr ? nullptr : finish.bias + piece * 64;
    if (args.out_as == out_type::bf16) {
      write_bf16(args, values, bias, finish, turning, line_entry, column, at.lane);
    } else {
      write_f32(args, values, bias, finish, entry, column + at.column());
    }
  }
}

}  // namespace moetier::kernels::cuda::straight
