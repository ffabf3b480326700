#pragma once
// DeepSeek-V3, V3.1, R1 and Kimi-K2, which has its architecture: sigmoid with a selection bias
// inside the best expert groups, scaled; the pattern of many later families, which start from this
// one. Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_deepseek_v3{
    .model_types = {"deepseek_v3", "kimi_k2"},
    .experts_key = "n_routed_experts",
    .layers = layer_rule::after_dense,
    .normalised = routing_method::deepseek_v3,
    .raw = routing_method::deepseek_v3,
    .norm = norm_rule::unless_told,
    .scoring = "sigmoid",
    .top_methods = {"noaux_tc"},
    .grouped = true,
    .scaling_key = "routed_scaling_factor",
    .shared_count_key = "n_shared_experts",
    .names = {.selection_bias = "mlp.gate.e_score_correction_bias",
              .shared = "mlp.shared_experts."},
};

}  // namespace moetier
