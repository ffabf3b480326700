#pragma once
// The arithmetic passes of routing: scores of a row, selection keys, sums. Scalar and AVX2 forms
// are equal in bits. Rows are 32-byte aligned and padded with -inf to a multiple of 32; biases are
// padded with 0 and never null. A key is score + bias, but -inf where the logit is -inf. Thread:
// any (constants).

#include <cstdint>

namespace moetier::kernels {

struct score_kernels {
  // Sum of exp(row[e] - largest): 32 lanes (e mod 32) in ascending e, folded 16, 8, 4, 2, 1.
  float (*exp_sum)(const float* row, std::uint32_t padded, float largest);
  // As exp_sum, without the values v that lie apart: (largest - v) / max(|v|, largest) > reach.
  float (*near_sum)(const float* row, std::uint32_t padded, float largest, float reach);
  // Scores and keys of a whole row: sigmoid, sqrt(softplus), exp(x - largest) / sum.
  void (*sigmoid)(const float* row, const float* bias, std::uint32_t padded, float* scores,
                  float* keys);
  void (*root_softplus)(const float* row, const float* bias, std::uint32_t padded, float* scores,
                        float* keys);
  void (*softmax)(const float* row, const float* bias, std::uint32_t padded, float largest,
                  float sum, float* scores, float* keys);
  // In place over `count` chosen logits. Requires: room for a multiple of 8.
  void (*exp_each)(float* values, std::uint32_t count, float largest);  // exp(v - largest)
  void (*sigmoid_each)(float* values, std::uint32_t count);
  void (*root_softplus_each)(float* values, std::uint32_t count);
};

extern const score_kernels k_score_kernels_scalar;
extern const score_kernels k_score_kernels_avx2;

}  // namespace moetier::kernels
