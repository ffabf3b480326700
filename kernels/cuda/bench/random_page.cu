#include "kernels/cuda/bench/random_page.cuh"

#include <algorithm>

#include <cuda_runtime_api.h>

namespace moetier::kernels::cuda::bench {
namespace {

constexpr std::uint32_t k_threads = 256;

std::uint32_t blocks_of(std::uint64_t items) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>((items + k_threads - 1) / k_threads, 1, 4096));
}

template <gemm_format Format>
void fill_matrices(const random_page_args& a, cudaStream_t stream) {
  const page_layout& l = a.layout;
  const auto fill = [&](std::uint64_t at, std::uint32_t strips, std::uint32_t blocks,
                        std::uint32_t rows, std::uint64_t seed) {
    const std::uint64_t chunks = std::uint64_t{strips} * blocks * (k_tile_bytes / 16);
    fill_matrix_kernel<Format><<<blocks_of(chunks), k_threads, 0, stream>>>(
        reinterpret_cast<uint4*>(a.page + at), strips, blocks, rows, seed);
  };
  fill(l.fc1, l.fc1_strips, l.fc1_blocks, 2 * a.shape.intermediate_size, mix(a.seed));
  fill(l.fc2, l.fc2_strips, l.fc2_blocks, a.shape.hidden_size, mix(a.seed + 1));
}

template <small_values What>
void fill_small(std::byte* at, std::uint64_t count, std::uint64_t seed, cudaStream_t stream) {
  fill_small_kernel<What>
      <<<blocks_of(count), k_threads, 0, stream>>>(reinterpret_cast<float*>(at), count, seed);
}

}  // namespace

launch_status fill_page(const random_page_args& a, void* stream) noexcept {
  const auto s = static_cast<cudaStream_t>(stream);
  const page_layout& l = a.layout;
  const std::uint32_t h = a.shape.hidden_size;
  const std::uint32_t i = a.shape.intermediate_size;
  if (a.shape.format == gemm_format::fp8) {
    fill_matrices<gemm_format::fp8>(a, s);
    const std::uint64_t scales1 = std::uint64_t{2} * (i / 128) * l.scale_pitch1;
    const std::uint64_t scales2 = std::uint64_t{h / 128} * l.scale_pitch2;
    fill_small<small_values::scales>(a.page + l.scales1, scales1, mix(a.seed + 2), s);
    fill_small<small_values::scales>(a.page + l.scales2, scales2, mix(a.seed + 3), s);
  } else {
    fill_matrices<gemm_format::bf16>(a, s);
  }
  if (a.shape.bias) {
    fill_small<small_values::biases>(a.page + l.bias1, std::uint64_t{2} * i, mix(a.seed + 4), s);
    fill_small<small_values::biases>(a.page + l.bias2, h, mix(a.seed + 5), s);
  }
  fill_constants_kernel<<<1, 1, 0, s>>>(reinterpret_cast<float*>(a.page + l.constants), a.alpha,
                                        a.beta, a.limit);
  return {cudaGetLastError()};
}

launch_status fill_rows(std::byte* rows, std::uint64_t elements, std::uint64_t seed,
                        void* stream) noexcept {
  fill_rows_kernel<<<blocks_of(elements / 2), k_threads, 0, static_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<std::uint32_t*>(rows), elements / 2, seed);
  return {cudaGetLastError()};
}

launch_status fill_codes(std::byte* codes, std::uint64_t elements, std::uint64_t seed,
                         void* stream) noexcept {
  fill_codes_kernel<<<blocks_of(elements / 16), k_threads, 0, static_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<uint4*>(codes), elements / 16, seed);
  return {cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda::bench
