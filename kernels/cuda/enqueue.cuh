#pragma once
// One way to launch a kernel: dynamic shared memory opted into, and, where asked for, beside the
// end of the launch before it on the stream (programmatic dependence; the kernel then waits for
// that one itself). Nothing is waited for. Thread: the stream's owner.

#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

struct kernel_grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
  std::uint32_t shared_bytes = 0;  // dynamic
  bool programmatic = false;
};

template <class... Arguments>
launch_status enqueue_kernel(void (*kernel)(Arguments...), const kernel_grid& grid, void* stream,
                             const std::type_identity_t<Arguments>&... arguments) noexcept {
  const cudaError_t sized = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes));
  if (sized != cudaSuccess) return {.error = sized};
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &early;
  config.numAttrs = grid.programmatic ? 1 : 0;
  return {.error = cudaLaunchKernelEx(&config, kernel, arguments...)};
}

}  // namespace moetier::kernels::cuda
