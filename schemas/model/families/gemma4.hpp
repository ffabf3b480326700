#pragma once
// Gemma 4 (MoE), multimodal: softmax over the k chosen logits times a scale of each expert; the
// router reads another vector than the experts.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_gemma4{
    .model_types = {"gemma4", "gemma4_text"},
    .top_k_key = "top_k_experts",
    .normalised = routing_method::renormalize,
    .raw = routing_method::renormalize,
    .activation = activation_kind::geglu_tanh,
    .activation_key = "hidden_activation",
    .activation_names = {"gelu_pytorch_tanh"},
    .activation_told = true,
    .required = {{{"enable_moe_block", "true"}}},
    .router_reads_hidden = false,
    .names = {.stems = {"model.language_model.layers.", "model.layers."},
              .router = "router.proj.weight",
              .expert_scale = "router.per_expert_scale",
              .experts = "experts."},
};

}  // namespace moetier
