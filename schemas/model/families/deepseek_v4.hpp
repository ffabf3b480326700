#pragma once
// DeepSeek-V4: sqrt(softplus) with a selection bias, or experts by token id in the first layers;
// always normalised, a clamp in every expert.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_deepseek_v4{
    .model_types = {"deepseek_v4"},
    .experts_key = "n_routed_experts",
    .normalised = routing_method::deepseek_v4,
    .raw = routing_method::deepseek_v4,
    .scoring = "sqrtsoftplus",
    .top_methods = {"noaux_tc"},
    .scaling_key = "routed_scaling_factor",
    .hash_key = "num_hash_layers",
    .limit_told = true,
    .shared_count_key = "n_shared_experts",
    .shared_count_absent = 1,
    .names = {.stems = {"layers.", "model.layers."},
              .router = "ffn.gate.weight",
              .selection_bias = "ffn.gate.bias",
              .token_table = "ffn.gate.tid2eid",
              .experts = "ffn.experts.",
              .split = {"w1", "w3", "w2"},
              .packed_as = packing::none,
              .shared = "ffn.shared_experts.",
              .shared_split = {"w1", "w3", "w2"}},
};

}  // namespace moetier
