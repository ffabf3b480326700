#pragma once
// The expert layer of sm_90 (identities moetier.cuda.sm90_fp8.fp8_block and
// moetier.cuda.sm90_bf16.none): grouping, row quantiser or gather, one of the two-GEMM kernels
// (sm90_variant.hpp), combine. It holds no memory and no state but the shape.
//
//   group      row tiles from slot ids
//   compute    rows -> tiled activations -> FC1, activation, FC2 -> (k_in > 1 in partial: combine)
//
// With one position a row, or in exact mode, FC2 writes the answer itself. With more it writes y
// rows, in f32 if the answer is f32 and else rounded to bf16, which the combine weighs and sums.
// The two-GEMM kernel and the combine start while their forerunner ends (programmatic dependence);
// the gather waits for all before it, so that a call sees the tables of its own grouping.
//
// Thread: as ExpertLayer.

#include <memory>

#include "kernels/cuda/expert_layer.hpp"

namespace moetier::kernels::cuda {

// Requires: fp8_block weights, H and I multiples of 128, swiglu, no bias; or unquantised bf16
// weights, H and I multiples of 64, swiglu or swiglu_bias. nullptr where its kernels cannot be
// launched on this device for this shape (shared memory).
std::unique_ptr<ExpertLayer> make_sm90_layer(const expert_shape& shape, const device_size& device);

}  // namespace moetier::kernels::cuda
