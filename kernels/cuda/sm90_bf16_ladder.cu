#include "kernels/cuda/sm90_bf16_ladder.hpp"

#include "kernels/cuda/ladder_start.cuh"

namespace moetier::kernels::cuda {

launch_status launch_bf16_ladder(const expert_gemm_args& args, const ladder_launch& launch,
                                 bool programmatic, void* stream) noexcept {
  return ladder::start<gemm_format::bf16>(args, launch, programmatic, stream);
}

}  // namespace moetier::kernels::cuda
