#include "kernels/cuda/sm90_f32_combine.cuh"

#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/sm90_f32_combine.hpp"

namespace moetier::kernels::cuda {

launch_status combine_rows(const combine_args& args, const device_size& device,
                           void* stream) noexcept {
  if (args.rows_cap == 0) return {};
  if (!can_combine_rows(args)) return {.error = launch_status::k_refused};
  const combine_plan plan = plan_combine(args, device);
  const auto kernel = args.y_as == out_type::bf16 ? combine_kernel<combine_bf16_columns>
                                                  : combine_kernel<combine_f32_columns>;
  return enqueue_kernel(kernel,
                        {.blocks = plan.grid, .threads = k_combine_threads, .programmatic = true},
                        stream, args, plan);
}

}  // namespace moetier::kernels::cuda
