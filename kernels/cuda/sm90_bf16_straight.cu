#include "kernels/cuda/sm90_bf16_straight.hpp"

#include "kernels/cuda/sm90_straight.cuh"
#include "kernels/cuda/sm90_straight_enqueue.cuh"

namespace moetier::kernels::cuda {

launch_status launch_bf16_straight(const expert_gemm_args& args, const straight_launch& plan,
                                   bool programmatic, void* stream) noexcept {
  return straight::enqueue<wgmma::bf16>(args, plan, programmatic, stream);
}

}  // namespace moetier::kernels::cuda
