#pragma once
// Qwen1.5-MoE and Qwen2-MoE: softmax, top-k, divided by their sum where told; a gated shared
// expert. The pattern of the later Qwens.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_qwen2_moe{
    .model_types = {"qwen2_moe"},
    .layers = layer_rule::sparse_step,
    .norm = norm_rule::if_told,
    .shared_size_key = "shared_expert_intermediate_size",
    .names = {.shared = "mlp.shared_expert.", .shared_gate = "mlp.shared_expert_gate.weight"},
};

}  // namespace moetier
