#pragma once
// The host's half of both ladder launchers: checks arguments against the plan, sets the kernel's
// shared memory, launches. Nothing is enqueued where it refuses.

#include "kernels/cuda/enqueue.cuh"
#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/ladder_launch.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/sm90_ladder.cuh"

namespace moetier::kernels::cuda::ladder {

inline bool fits(const expert_gemm_args& args, const ladder_launch& launch, gemm_format format) {
  const page_layout& page = args.layout;
  return launch.format == format && args.shape.format == format &&
         page == page_layout_of(args.shape) && launch.fc1.strips == page.fc1_strips &&
         launch.fc1.k.blocks == page.fc1_blocks && launch.fc2.strips == page.fc2_strips &&
         launch.fc2.k.blocks == page.fc2_blocks &&
         (format == gemm_format::bf16 || args.activation == gemm_activation::swiglu) &&
         args.pages != nullptr && args.tiles.header != nullptr && args.tiles.tiles != nullptr &&
         args.tiles.entry_of != nullptr && args.x != nullptr && args.mid != nullptr &&
         args.out != nullptr && args.counters != nullptr && args.partials != nullptr &&
         args.status != nullptr;
}

template <gemm_format Format>
launch_status start(const expert_gemm_args& args, const ladder_launch& launch, bool programmatic,
                    void* stream) noexcept {
  if (!fits(args, launch, Format)) return {.error = launch_status::k_refused};
  return enqueue_kernel(ladder_kernel<Format>,
                        {.blocks = launch.blocks,
                         .threads = launch.threads,
                         .shared_bytes = launch.shared_bytes,
                         .programmatic = programmatic},
                        stream, args, launch);
}

}  // namespace moetier::kernels::cuda::ladder
