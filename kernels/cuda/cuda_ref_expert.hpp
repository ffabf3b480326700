#pragma once
// The readable expert on a CUDA device, as the host sees it: the check of slot ids, FC1 with
// activation, FC2, the weighted sum, each a launch of its own over canonical pages of any format
// and any H and I. f32 sums in an order that depends on the shape alone; nothing is tuned beyond
// neighbours reading neighbours. cuda_ref_layer.hpp puts them behind ExpertLayer.
//
// Thread: engine (the owner of the stream).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/launch.hpp"
#include "schemas/model/activation.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::uint64_t k_ref_absent = ~std::uint64_t{0};

// Where a canonical matrix lies in its page, in bytes.
struct ref_matrix {
  std::uint64_t codes = k_ref_absent;
  std::uint64_t scales = 0;
  std::uint64_t second = 0;  // one f32; nvfp4 only
  std::uint32_t out = 0;
  std::uint32_t in = 0;
  std::uint32_t groups = 0;  // of scales along `in`
};

struct ref_page {
  weight_format format{};
  activation_kind activation = activation_kind::swiglu;
  ref_matrix gate{};  // absent where the activation has none
  ref_matrix up{};
  ref_matrix down{};
  std::uint64_t gate_bias = k_ref_absent;  // f32; biases may be absent
  std::uint64_t up_bias = k_ref_absent;
  std::uint64_t down_bias = k_ref_absent;
  std::uint64_t constants = 0;  // activation_constants
};

// Pointers are device memory.
struct ref_expert_args {
  ref_page page{};
  const std::byte* const* pages = nullptr;  // [slots]
  std::uint32_t slots = 0;
  const std::int32_t* slot_ids = nullptr;  // [rows_cap][k_in]
  const std::uint32_t* rows_live = nullptr;
  std::uint32_t rows_cap = 0;
  std::uint32_t k_in = 1;
  const std::byte* rows = nullptr;
  std::size_t row_pitch_bytes = 0;
  row_type row_as = row_type::f32;
  float* mid = nullptr;  // [rows_cap * k_in][I]
  float* y = nullptr;    // [rows_cap * k_in][H]; nullptr = entries go to `out` as they are
  const float* weights = nullptr;
  std::byte* out = nullptr;  // rows; without y entries
  std::size_t out_pitch_bytes = 0;
  out_type out_as = out_type::f32;
  std::uint32_t* status = nullptr;
};

inline constexpr std::uint32_t k_ref_threads = 256;
inline constexpr std::uint32_t k_ref_strip = 64;  // outputs of one block, eight a warp
inline constexpr std::uint32_t k_ref_blocks_per_multiprocessor = 8;

// Blocks for `rows` rows of `outputs` outputs.
constexpr std::uint32_t plan_ref_grid(std::uint64_t rows, std::uint32_t outputs,
                                      const device_size& device) noexcept {
  const std::uint64_t most =
      std::uint64_t{device.multiprocessors} * k_ref_blocks_per_multiprocessor;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(rows * ceil_div(outputs, k_ref_strip), 1, most));
}

launch_status ref_check_slots(const ref_expert_args& args, void* stream) noexcept;
launch_status ref_fc1(const ref_expert_args& args, const device_size& device,
                      void* stream) noexcept;
launch_status ref_fc2(const ref_expert_args& args, const device_size& device,
                      void* stream) noexcept;
// Requires: y.
launch_status ref_combine(const ref_expert_args& args, const device_size& device,
                          void* stream) noexcept;

}  // namespace moetier::kernels::cuda
