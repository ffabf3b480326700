#include "kernels/cuda/sm90_i32_row_tiles.cuh"

#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/sm90_i32_row_tiles.hpp"

namespace moetier::kernels::cuda {
launch_status make_row_tiles(const row_tiles_args& args, void* stream) noexcept {
  if (!can_make_row_tiles(args)) return {.error = launch_status::k_refused};
  const row_tiles_plan plan = plan_row_tiles(row_tiles_entries(args), args.slots);
  const auto tiles = [&](auto kernel, bool programmatic) {
    return enqueue_kernel(kernel,
                          {.blocks = plan.blocks,
                           .threads = plan.threads,
                           .shared_bytes = plan.shared_bytes,
                           .programmatic = programmatic},
                          stream, args, plan);
  };
  if (plan.launches == 1) return tiles(row_tiles_kernel<false>, false);
  const launch_status counted = enqueue_kernel(
      row_counts_kernel, {.blocks = plan.blocks, .threads = plan.threads}, stream, args, plan);
  if (!counted.ok()) return counted;
  return tiles(row_tiles_kernel<true>, true);  // begins beside the launch that counts
}

}  // namespace moetier::kernels::cuda
