#pragma once
// Qwen3-MoE (Qwen3-30B-A3B and its kin): softmax over all experts, top-k, divided by their sum
// where norm_topk_prob says so; some layers may be dense. Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_qwen3_moe{
    .model_type = "qwen3_moe",
    .intermediate_key = "moe_intermediate_size",
    .normalised = routing_method::renormalize_naive,
    .raw = routing_method::default_softmax,
    .norm_topk_prob_default = false,
    .sparse = sparse_layers::by_sparse_step,
};

}  // namespace moetier
