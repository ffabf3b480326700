#include "kernels/cuda/sm90_i32_slot_count.cuh"

#include <cuda_runtime_api.h>

#include "kernels/cuda/slot_count_launch.hpp"
#include "kernels/cuda/sm90_i32_slot_count.hpp"

namespace moetier::kernels::cuda {

slot_count_status count_slots(const slot_count_args& args) noexcept {
  if (!can_count(args)) return slot_count_status::bad_problem;

  int device = 0;
  int multiprocessors = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess) {
    return slot_count_status::device_error;
  }
  const auto plan = plan_slot_count(args.entry_count, args.slot_count,
                                    static_cast<std::uint32_t>(multiprocessors));

  const auto stream = static_cast<cudaStream_t>(args.stream);
  const std::size_t counts_bytes = args.slot_count * sizeof(std::uint32_t);
  if (cudaMemsetAsync(args.counts, 0, counts_bytes, stream) != cudaSuccess ||
      cudaMemsetAsync(args.bad_entries, 0, sizeof(std::uint32_t), stream) != cudaSuccess) {
    return slot_count_status::device_error;
  }
  slot_count_kernel<<<plan.blocks, plan.threads, plan.shared_bytes, stream>>>(args);
  return cudaGetLastError() == cudaSuccess ? slot_count_status::ok
                                           : slot_count_status::device_error;
}

}  // namespace moetier::kernels::cuda
