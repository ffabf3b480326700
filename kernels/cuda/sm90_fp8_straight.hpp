#pragma once
// Both expert GEMMs of a batch with many rows an expert, in fp8: E4M3 codes, rows scaled 1 x 128,
// weights 128 x 128, sums promoted every 128 of K.
// What is computed and how: kernels/cuda/sm90_straight.cuh; arguments: expert_gemm_args.hpp. It
// enqueues one kernel on the stream and returns; it never allocates or waits.
//
// The caller guarantees: row tiles of k_straight_tile_rows made earlier on the stream, a page for
// every slot that has a tile, counters of the plan's number, all zero before the first launch, and
// `mid` for groups_max() groups. With `programmatic` the kernel may start before the kernel ahead
// of it on the stream has ended, and reads nothing until that one is complete; the kernel behind it
// may start early likewise and must wait (griddepcontrol.wait) before it reads the output, the
// counters or `mid`.
//
// Thread: engine (the owner of the stream).

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/straight_launch.hpp"

namespace moetier::kernels::cuda {

// Refused: a plan of another format, weights or counters that are missing, a split over K.
launch_status launch_fp8_straight(const expert_gemm_args& args, const straight_launch& plan,
                                  bool programmatic, void* stream) noexcept;

}  // namespace moetier::kernels::cuda
