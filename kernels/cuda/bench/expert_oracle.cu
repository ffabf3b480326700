#include "kernels/cuda/bench/expert_oracle.cuh"

#include <cuda_runtime_api.h>

namespace moetier::kernels::cuda::bench {
namespace {

template <gemm_format Format>
void enqueue(const oracle_args& a, cudaStream_t stream) {
  const auto warps = [](std::uint64_t tasks) {
    return static_cast<std::uint32_t>(ceil_div(tasks, k_oracle_threads / 32));
  };
  const auto columns = [](std::uint64_t rows, std::uint32_t width) {
    return static_cast<std::uint32_t>(rows * ceil_div(width, k_oracle_block));
  };
  const std::uint32_t h = a.shape.hidden_size;
  const std::uint32_t i = a.shape.intermediate_size;
  const std::uint64_t entries = std::uint64_t{a.samples} * a.k;
  oracle_rows_kernel<Format><<<columns(a.samples, h), k_oracle_block, 0, stream>>>(a);
  oracle_mid_kernel<Format><<<warps(entries * i), k_oracle_threads, 0, stream>>>(a);
  if constexpr (Format == gemm_format::fp8)
    oracle_requantise_kernel<<<columns(entries, i), k_oracle_block, 0, stream>>>(a);
  oracle_out_kernel<Format>
      <<<warps(std::uint64_t{a.samples} * h), k_oracle_threads, 0, stream>>>(a);
}

}  // namespace

launch_status run_oracle(const oracle_args& a, void* stream) noexcept {
  if (a.samples == 0 || a.k == 0) return {launch_status::k_refused};
  const auto s = static_cast<cudaStream_t>(stream);
  if (a.shape.format == gemm_format::fp8)
    enqueue<gemm_format::fp8>(a, s);
  else
    enqueue<gemm_format::bf16>(a, s);
  return {cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda::bench
