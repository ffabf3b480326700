#include "kernels/cuda/sm90_fp8_quantise_rows.cuh"

#include <cuda_runtime_api.h>

#include "kernels/cuda/sm90_fp8_quantise_rows.hpp"

namespace moetier::kernels::cuda {
namespace {

template <bool ByRow>
auto kernel_for(row_type type) {
  return type == row_type::bf16 ? quantise_rows_kernel<quantised_bf16_piece, ByRow>
                                : quantise_rows_kernel<quantised_f32_piece, ByRow>;
}

}  // namespace

launch_status quantise_rows(const gather_rows_args& args, const device_size& device,
                            void* stream) noexcept {
  if (args.rows_cap == 0) return {};
  if (!can_gather_rows(args, gemm_format::fp8)) return {.error = launch_status::k_refused};
  const gather_rows_plan plan = plan_gather_rows(args, gemm_format::fp8, device);
  const auto kernel = plan.by_row ? kernel_for<true>(args.row_as) : kernel_for<false>(args.row_as);
  kernel<<<plan.grid, k_gather_threads, 0, static_cast<cudaStream_t>(stream)>>>(args, plan);
  return {.error = cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda
