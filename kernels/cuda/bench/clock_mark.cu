#include "kernels/cuda/bench/clock_mark.hpp"

#include <cuda_runtime_api.h>

#include "kernels/cuda/sm90_ptx.cuh"

namespace moetier::kernels::cuda::bench {
namespace {

__global__ void clock_mark_kernel(clock_reading* readings) {
  std::uint32_t multiprocessor;
  asm volatile("mov.u32 %0, %smid;" : "=r"(multiprocessor));
  if (multiprocessor < k_clock_readings)
    readings[multiprocessor] = {static_cast<std::uint64_t>(clock64()), ptx::now_ns()};
}

__global__ void nothing_kernel() {}

}  // namespace

launch_status mark_clocks(clock_reading* readings, const device_size& device,
                          void* stream) noexcept {
  clock_mark_kernel<<<device.multiprocessors, 1, 0, static_cast<cudaStream_t>(stream)>>>(readings);
  return {cudaGetLastError()};
}

launch_status launch_nothing(void* stream) noexcept {
  nothing_kernel<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>();
  return {cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda::bench
