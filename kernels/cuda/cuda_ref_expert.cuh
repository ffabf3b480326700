#pragma once
// The expert's formula, element by element, on a CUDA device: a warp makes one output at a time,
// lane l sums columns l, l + 32, ... in f32, and the lanes' sums are folded in halves; so the bits
// of y depend on the row and the expert alone. Weights are read through the canonical formats'
// definition (schemas/model/weight_format.hpp), each product rounded once.

#include <cstdint>
#include <limits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/activation/activation_math.hpp"
#include "kernels/activation/scalar_value.hpp"
#include "kernels/cuda/cuda_ref_expert.hpp"
#include "kernels/cuda/sm90_ptx.cuh"
#include "schemas/base/small_floats.hpp"

namespace moetier::kernels::cuda {

// One format's elements. Stored matters only where Quant is none.
template <quant_kind Quant, dtype Stored>
struct ref_format {
  static __device__ float value(const std::byte* page, const ref_matrix& m, std::uint32_t r,
                                std::uint32_t c) {
    const std::size_t i = std::size_t{r} * m.in + c;
    const std::byte* const codes = page + m.codes;
    if constexpr (Quant == quant_kind::none) {
      if constexpr (Stored == dtype::f32) return reinterpret_cast<const float*>(codes)[i];
      const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(codes)[i];
      return Stored == dtype::bf16 ? f32_from_bf16(bits) : __half2float(__ushort_as_half(bits));
    } else {
      const auto byte = std::to_integer<std::uint8_t>(codes[is_four_bit(Quant) ? i / 2 : i]);
      const auto nibble = static_cast<std::uint8_t>(i % 2 == 0 ? byte & 15u : byte >> 4);
      const std::byte* const scales = page + m.scales;
      const std::size_t s = std::size_t{r} * m.groups + c / std::max(group_columns(Quant), 1u);
      const auto small_scale = [&] { return std::to_integer<std::uint8_t>(scales[s]); };
      if constexpr (Quant == quant_kind::fp8_tensor) {
        return f32_from_e4m3(byte) * reinterpret_cast<const float*>(scales)[r];
      } else if constexpr (Quant == quant_kind::fp8_block) {
        return f32_from_e4m3(byte) *
               reinterpret_cast<const float*>(scales)[std::size_t{r / 128} * m.groups + c / 128];
      } else if constexpr (Quant == quant_kind::mxfp8) {
        return f32_from_e4m3(byte) * f32_from_ue8m0(small_scale());
      } else if constexpr (Quant == quant_kind::mxfp4) {
        return f32_from_e2m1(nibble) * f32_from_ue8m0(small_scale());
      } else if constexpr (Quant == quant_kind::nvfp4) {
        return f32_from_e2m1(nibble) * f32_from_e4m3(small_scale()) *
               *reinterpret_cast<const float*>(page + m.second);
      } else {
        static_assert(Quant == quant_kind::int4_g128);
        return f32_from_int4(nibble) *
               f32_from_bf16(reinterpret_cast<const std::uint16_t*>(scales)[s]);
      }
    }
  }
};

// One row of f32 or bf16.
struct ref_row {
  const std::byte* at;
  row_type type;
  __device__ float operator[](std::uint32_t k) const {
    return type == row_type::f32 ? reinterpret_cast<const float*>(at)[k]
                                 : f32_from_bf16(reinterpret_cast<const std::uint16_t*>(at)[k]);
  }
};

// Requires: all lanes.
template <class Format>
__device__ inline float ref_product(const std::byte* page, const ref_matrix& m, std::uint32_t r,
                                    const ref_row& x, std::uint64_t bias) {
  float sum = 0;
  for (std::uint32_t c = threadIdx.x % 32; c < m.in; c += 32)
    sum = __fmaf_rn(Format::value(page, m, r, c), x[c], sum);
  for (std::uint32_t half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  return bias == k_ref_absent ? sum : sum + reinterpret_cast<const float*>(page + bias)[r];
}

struct ref_activation {
  scalar_value g;
  scalar_value l;
  constants_as<scalar_value> constants;
  float result = 0;
  template <activation_kind Kind>
  MOETIER_HOST_DEVICE void operator()() {
    result = activated<Kind>(g, l, constants).v;
  }
};

__device__ inline float ref_activated(activation_kind kind, float g, float l,
                                      const activation_constants& c) {
  const float limit = c.limit > 0 ? c.limit : std::numeric_limits<float>::infinity();
  ref_activation both{{g}, {l}, {{c.alpha}, {c.beta}, {limit}}};
  with_kind(kind, both);
  return both.result;
}

__device__ inline std::uint32_t ref_live_rows(const ref_expert_args& args) {
  return min(*args.rows_live, args.rows_cap);
}

// nullptr where the entry is none, or cannot be served.
__device__ inline const std::byte* ref_page_of(const ref_expert_args& args, std::size_t entry) {
  const auto slot = static_cast<std::uint32_t>(args.slot_ids[entry]);
  return slot < args.slots ? args.pages[slot] : nullptr;
}

__device__ inline void ref_store(std::byte* row, out_type type, std::uint32_t n, float value) {
  if (type == out_type::f32) {
    reinterpret_cast<float*>(row)[n] = value;
  } else {
    reinterpret_cast<__nv_bfloat16*>(row)[n] = __float2bfloat16_rn(value);
  }
}

__global__ void __launch_bounds__(k_ref_threads) ref_check_kernel(const ref_expert_args args) {
  const std::size_t entries = std::size_t{ref_live_rows(args)} * args.k_in;
  for (std::size_t e = threadIdx.x; e < entries; e += k_ref_threads) {
    const std::int32_t slot = args.slot_ids[e];
    if (slot != -1 && ref_page_of(args, e) == nullptr)
      ptx::report(args.status, device_failure::bad_slot, static_cast<std::uint32_t>(slot));
  }
}

// Calls body(entry, page, output) for each output of each entry, by all lanes of a warp.
template <class Body>
__device__ inline void ref_each_output(const ref_expert_args& args, std::uint32_t outputs,
                                       const Body& body) {
  const std::uint64_t entries = std::uint64_t{ref_live_rows(args)} * args.k_in;
  const std::uint64_t strips = ceil_div(outputs, k_ref_strip);
  for (std::uint64_t unit = blockIdx.x; unit < entries * strips; unit += gridDim.x) {
    const std::uint64_t entry = unit / strips;
    const std::byte* const page = ref_page_of(args, entry);
    if (page == nullptr) continue;
    const auto first = static_cast<std::uint32_t>(unit % strips) * k_ref_strip;
    const std::uint32_t end = min(first + k_ref_strip, outputs);
    for (std::uint32_t n = first + threadIdx.x / 32; n < end; n += k_ref_threads / 32)
      body(entry, page, n);
  }
}

template <class Format>
__global__ void __launch_bounds__(k_ref_threads) ref_fc1_kernel(const ref_expert_args args) {
  const ref_page& where = args.page;
  ref_each_output(
      args, where.up.out, [&](std::uint64_t entry, const std::byte* page, std::uint32_t i) {
        const ref_row x{args.rows + entry / args.k_in * args.row_pitch_bytes, args.row_as};
        const float g = where.gate.codes == k_ref_absent
                            ? 0.0F
                            : ref_product<Format>(page, where.gate, i, x, where.gate_bias);
        const float l = ref_product<Format>(page, where.up, i, x, where.up_bias);
        const auto& constants =
            *reinterpret_cast<const activation_constants*>(page + where.constants);
        if (threadIdx.x % 32 == 0)
          args.mid[entry * where.up.out + i] = ref_activated(where.activation, g, l, constants);
      });
}

template <class Format>
__global__ void __launch_bounds__(k_ref_threads) ref_fc2_kernel(const ref_expert_args args) {
  const ref_page& where = args.page;
  ref_each_output(
      args, where.down.out, [&](std::uint64_t entry, const std::byte* page, std::uint32_t n) {
        const ref_row mid{reinterpret_cast<const std::byte*>(args.mid + entry * where.down.in),
                          row_type::f32};
        const float y = ref_product<Format>(page, where.down, n, mid, where.down_bias);
        if (threadIdx.x % 32 != 0) return;
        if (args.y != nullptr) {
          args.y[entry * where.down.out + n] = y;
        } else {
          ref_store(args.out + entry * args.out_pitch_bytes, args.out_as, n, y);
        }
      });
}

// A thread a column: the row's entries in ascending (slot, position), each found by a pass over the
// positions.
__global__ void __launch_bounds__(k_ref_threads) ref_combine_kernel(const ref_expert_args args) {
  const std::uint32_t hidden = args.page.down.out;
  const std::uint32_t live = ref_live_rows(args);
  for (std::uint32_t r = blockIdx.x; r < live; r += gridDim.x) {
    const std::int32_t* const slots = args.slot_ids + std::size_t{r} * args.k_in;
    for (std::uint32_t n = threadIdx.x; n < hidden; n += k_ref_threads) {
      float sum = 0;
      std::uint64_t before = 0;  // (slot, position) + 1 of the entry summed last
      while (true) {
        std::uint64_t next = ~std::uint64_t{0};
        for (std::uint32_t j = 0; j < args.k_in; ++j) {
          if (slots[j] < 0) continue;
          const std::uint64_t key = (static_cast<std::uint64_t>(slots[j]) << 32 | j) + 1;
          if (key > before && key < next) next = key;
        }
        if (next == ~std::uint64_t{0}) break;
        const std::size_t entry = std::size_t{r} * args.k_in + static_cast<std::uint32_t>(next - 1);
        sum = __fmaf_rn(args.weights[entry], args.y[entry * hidden + n], sum);
        before = next;
      }
      ref_store(args.out + r * args.out_pitch_bytes, args.out_as, n, sum);
    }
  }
}

}  // namespace moetier::kernels::cuda
