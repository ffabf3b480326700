#pragma once
// DeepSeek-V2 and V2-Lite: softmax over all experts, inside the best groups or not, scaled.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_deepseek_v2{
    .model_types = {"deepseek_v2"},
    .experts_key = "n_routed_experts",
    .layers = layer_rule::after_dense,
    .normalised = routing_method::deepseek_v2,
    .raw = routing_method::deepseek_v2,
    .norm = norm_rule::never_allowed,
    .top_methods = {"greedy", "group_limited_greedy"},
    .grouped = true,
    .scaling_key = "routed_scaling_factor",
    .shared_count_key = "n_shared_experts",
    .names = {.shared = "mlp.shared_experts."},
};

}  // namespace moetier
