#pragma once
// Qwen3-MoE (Qwen3-30B-A3B and its kin): as Qwen2-MoE, nothing shared.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_qwen3_moe{
    .model_types = {"qwen3_moe"},
    .layers = layer_rule::sparse_step,
    .norm = norm_rule::if_told,
};

}  // namespace moetier
