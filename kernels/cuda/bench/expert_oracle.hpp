#pragma once
// The layer's result for some rows in fp64, computed on the device from the pages as they lie there
// (through weight_offset()), for the bench to hold the kernels' result against. Where the format
// quantises rows, so does the oracle, by the rule of kernels/quant/row_quantiser.hpp; products,
// sums, activation and router weights are fp64 and nothing else is rounded.
//
// Thread: engine (the owner of the stream).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda::bench {

struct oracle_args {
  gemm_shape shape{};
  page_layout layout{};
  gemm_activation activation = gemm_activation::swiglu;
  const std::byte* const* pages = nullptr;  // [slots]; device memory, as all pointers here
  const std::byte* rows = nullptr;          // bf16 [rows][H]
  const std::int32_t* slot_ids = nullptr;   // [rows][k]
  const float* weights = nullptr;           // [rows][k]
  std::uint32_t k = 0;
  const std::uint32_t* sampled = nullptr;  // [samples]: row numbers
  std::uint32_t samples = 0;
  double* x = nullptr;    // [samples][H]
  double* mid = nullptr;  // [samples * k][I]
  double* out = nullptr;  // [samples][H]
};

launch_status run_oracle(const oracle_args& args, void* stream) noexcept;

}  // namespace moetier::kernels::cuda::bench
