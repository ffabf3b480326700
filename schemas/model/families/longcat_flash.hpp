#pragma once
// LongCat-Flash: softmax plus a selection bias over real and identity experts, never divided,
// scaled. Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_longcat_flash{
    .model_types = {"longcat_flash"},
    .layers_key = "num_layers",
    .intermediate_key = "expert_ffn_hidden_size",
    .experts_key = "n_routed_experts",
    .top_k_key = "moe_topk",
    .normalised = routing_method::softmax_bias_raw,
    .raw = routing_method::softmax_bias_raw,
    .scaling_key = "routed_scaling_factor",
    .identity_key = "zero_expert_num",
    .required = {{{"zero_expert_type", "\"identity\""}, {"router_bias", "false"}}},
    .names = {.router = "mlp.router.classifier.weight",
              .selection_bias = "mlp.router.e_score_correction_bias"},
};

}  // namespace moetier
