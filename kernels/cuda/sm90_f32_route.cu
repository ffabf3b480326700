#include "kernels/cuda/sm90_f32_route.cuh"

#include <cuda_runtime_api.h>

#include "kernels/cuda/sm90_f32_route.hpp"

namespace moetier::kernels::cuda {

launch_status route_rows(const route_args& args, const device_size& device, void* stream) noexcept {
  if (args.tokens_cap == 0) return {};
  if (!can_route(args)) return {.error = launch_status::k_refused};
  const route_plan plan = plan_route(args, device);
  const auto kernel = plan.lane_columns == 4    ? route_kernel<4>
                      : plan.lane_columns == 8  ? route_kernel<8>
                      : plan.lane_columns == 16 ? route_kernel<16>
                                                : route_kernel<32>;
  kernel<<<plan.grid, k_route_warps * 32, 0, static_cast<cudaStream_t>(stream)>>>(args, plan);
  return {.error = cudaGetLastError()};
}

}  // namespace moetier::kernels::cuda
