#pragma once
// Random weights and rows, made on the device: a page is filled straight in its layout, since any
// layout of random weights is random. Codes are E4M3 of normal x 100 with scales of 0.5e-4 to
// 1.5e-4, or bf16 of normal / 100; biases are normal / 10; rows are bf16 normal. Rows beyond a
// matrix's own are zero.
//
// Thread: engine (the owner of the stream).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda::bench {

struct random_page_args {
  gemm_shape shape{};
  page_layout layout{};
  float alpha = 0;
  float beta = 0;
  float limit = 0;  // 0 = no clamp
  std::byte* page = nullptr;
  std::uint64_t seed = 0;
};

launch_status fill_page(const random_page_args& args, void* stream) noexcept;
launch_status fill_rows(std::byte* rows, std::uint64_t elements, std::uint64_t seed,
                        void* stream) noexcept;
// E4M3 of normal x 100. Requires: a multiple of 16.
launch_status fill_codes(std::byte* codes, std::uint64_t elements, std::uint64_t seed,
                         void* stream) noexcept;

}  // namespace moetier::kernels::cuda::bench
