#pragma once
// Mixtral (8x7B, 8x22B): softmax over the k chosen logits; every layer is a MoE layer.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_mixtral{
    .model_type = "mixtral",
    .intermediate_key = "intermediate_size",
    .normalised = routing_method::renormalize,
    .raw = routing_method::renormalize,
    .norm_topk_prob_default = true,
    .sparse = sparse_layers::all,
};

}  // namespace moetier
