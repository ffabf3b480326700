#include "kernels/cuda/sm90_bf16_gather_rows.cuh"

#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/sm90_bf16_gather_rows.hpp"

namespace moetier::kernels::cuda {
namespace {

template <row_piece Piece>
auto kernel_for(gather_way way) {
  return way == gather_way::by_row     ? gather_rows_kernel<Piece, gather_way::by_row>
         : way == gather_way::by_chunk ? gather_rows_kernel<Piece, gather_way::by_chunk>
                                       : gather_rows_kernel<Piece, gather_way::by_tile>;
}

}  // namespace

launch_status gather_rows(const gather_rows_args& args, const device_size& device,
                          void* stream) noexcept {
  if (args.rows_cap == 0) return {};
  if (!can_gather_rows(args, gemm_format::bf16)) return {.error = launch_status::k_refused};
  const gather_rows_plan plan = plan_gather_rows(args, gemm_format::bf16, device);
  const auto kernel = args.row_as == row_type::bf16 ? kernel_for<copied_bf16_piece>(plan.way)
                                                    : kernel_for<rounded_f32_piece>(plan.way);
  return enqueue_kernel(kernel, {.blocks = plan.grid, .threads = k_gather_threads}, stream, args,
                        plan);
}

}  // namespace moetier::kernels::cuda
