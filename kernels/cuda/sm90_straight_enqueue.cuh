#pragma once
// The launcher of the straight kernel, once for both formats: check the plan against the arguments,
// set the kernel's shared memory, enqueue.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/sm90_straight.cuh"

namespace moetier::kernels::cuda::straight {

template <wgmma::gemm_number Number>
bool matches(const expert_gemm_args& args, const straight_launch& plan) noexcept {
  const bool complete = args.pages != nullptr && args.tiles.header != nullptr &&
                        args.x != nullptr && args.mid != nullptr && args.out != nullptr &&
                        args.counters != nullptr && args.status != nullptr;
  return complete && args.partials == nullptr && plan.format == k_format<Number> &&
         args.shape.format == k_format<Number> && plan.threads == k_straight_threads &&
         plan.stages == k_straight_stages && plan.shared_bytes == sizeof(block_shared<Number>) &&
         args.layout == page_layout_of(args.shape) && args.out_pitch_bytes % 16 == 0 &&
         (!Number::promoted || args.activation == gemm_activation::swiglu);
}

template <wgmma::gemm_number Number>
launch_status enqueue(const expert_gemm_args& args, const straight_launch& plan, bool programmatic,
                      void* stream) noexcept {
  if (!matches<Number>(args, plan)) return {launch_status::k_refused};
  return enqueue_kernel(straight_kernel<Number>,
                        {.blocks = plan.blocks,
                         .threads = plan.threads,
                         .shared_bytes = plan.shared_bytes,
                         .programmatic = programmatic},
                        stream, args);
}

}  // namespace moetier::kernels::cuda::straight
