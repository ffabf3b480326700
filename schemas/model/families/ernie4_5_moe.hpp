#pragma once
// ERNIE 4.5: softmax plus a selection bias; weights divided by their sum, or by moe_norm_min where
// that is more.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_ernie4_5_moe{
    .model_types = {"ernie4_5_moe"},
    .experts_key = "moe_num_experts",
    .top_k_key = "moe_k",
    .layers = layer_rule::interval,
    .normalised = routing_method::softmax_bias,
    .raw = routing_method::softmax_bias,
    .epsilon_key = "moe_norm_min",
    .epsilon = 1e-12F,
    .bias_flag = "moe_use_aux_free",
    .required = {{{"moe_gate", "\"topk\""}}},
    .shared_count_key = "moe_num_shared_experts",
    .names = {.selection_bias = "mlp.moe_statics.e_score_correction_bias",
              .shared = "mlp.shared_experts."},
};

}  // namespace moetier
