#include "kernels/cuda/sm90_i32_row_tiles.cuh"

#include <cuda_runtime_api.h>

#include "kernels/cuda/sm90_i32_row_tiles.hpp"

namespace moetier::kernels::cuda {
namespace {

template <bool Parted>
int launch_tiles(const row_tiles_args& args, const row_tiles_plan& plan, cudaStream_t stream) {
  const auto kernel = row_tiles_kernel<Parted>;
  const cudaError_t sized = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.shared_bytes));
  if (sized != cudaSuccess) return sized;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(plan.blocks);
  config.blockDim = dim3(plan.threads);
  config.dynamicSmemBytes = plan.shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = Parted ? 1 : 0;  // begins beside the launch that counts
  return cudaLaunchKernelEx(&config, kernel, args, plan);
}

}  // namespace

launch_status make_row_tiles(const row_tiles_args& args, void* stream) noexcept {
  if (!can_make_row_tiles(args)) return {.error = launch_status::k_refused};
  const row_tiles_plan plan = plan_row_tiles(row_tiles_entries(args), args.slots);
  const auto on = static_cast<cudaStream_t>(stream);
  if (plan.launches == 1) return {.error = launch_tiles<false>(args, plan, on)};
  row_counts_kernel<<<plan.blocks, plan.threads, 0, on>>>(args, plan);
  if (const cudaError_t counted = cudaGetLastError(); counted != cudaSuccess)
    return {.error = counted};
  return {.error = launch_tiles<true>(args, plan, on)};
}

}  // namespace moetier::kernels::cuda
