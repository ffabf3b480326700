#include "kernels/cuda/bench/sm90_read_probe.cuh"

#include <cuda_runtime_api.h>

namespace moetier::kernels::cuda::bench {

launch_status read_pages(const read_probe_args& args, const device_size& device,
                         void* stream) noexcept {
  if (k_probe_shared_bytes > device.shared_bytes_max) return {launch_status::k_refused};
  const cudaError_t set = cudaFuncSetAttribute(
      read_probe_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, k_probe_shared_bytes);
  if (set != cudaSuccess) return {set};
  read_probe_kernel<<<device.multiprocessors, k_probe_threads, k_probe_shared_bytes,
                      static_cast<cudaStream_t>(stream)>>>(args);
  return {cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda::bench
