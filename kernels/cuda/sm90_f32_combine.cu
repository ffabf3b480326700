#include "kernels/cuda/sm90_f32_combine.cuh"

#include <cuda_runtime_api.h>

#include "kernels/cuda/sm90_f32_combine.hpp"

namespace moetier::kernels::cuda {

launch_status combine_rows(const combine_args& args, const device_size& device,
                           void* stream) noexcept {
  if (args.rows_cap == 0) return {};
  if (!can_combine_rows(args)) return {.error = launch_status::k_refused};
  const combine_plan plan = plan_combine(args, device);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(plan.grid);
  config.blockDim = dim3(k_combine_threads);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &early;
  config.numAttrs = 1;
  const auto kernel = args.y_as == out_type::bf16 ? combine_kernel<combine_bf16_columns>
                                                  : combine_kernel<combine_f32_columns>;
  return {.error = cudaLaunchKernelEx(&config, kernel, args, plan)};
}

}  // namespace moetier::kernels::cuda
