#pragma once
// The ladder kernel for bf16
// as the host sees it: one launch on `stream` (a cudaStream_t) of FC1, activation and FC2. What it
// computes and what a programmatic launch asks of its caller: kernels/cuda/sm90_ladder.cuh.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/ladder_launch.hpp"
#include "kernels/cuda/launch.hpp"

namespace moetier::kernels::cuda {

// Refused where args and launch are of different shapes or formats, or a pointer is missing.
launch_status launch_bf16_ladder(const expert_gemm_args& args, const ladder_launch& launch,
                                 bool programmatic, void* stream) noexcept;

}  // namespace moetier::kernels::cuda
