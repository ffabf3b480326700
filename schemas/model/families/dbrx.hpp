#pragma once
// DBRX: softmax divided by a power norm; three tensors hold all experts of a layer, down in-major.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_dbrx{
    .model_types = {"dbrx"},
    .hidden_key = "d_model",
    .layers_key = "n_layers",
    .intermediate_key = "ffn_config.ffn_hidden_size",
    .experts_key = "ffn_config.moe_num_experts",
    .top_k_key = "ffn_config.moe_top_k",
    .normalised = routing_method::softmax_pnorm,
    .power_key = "ffn_config.moe_normalize_expert_weights",
    .activation_key = "ffn_config.ffn_act_fn.name",
    .names = {.stems = {"transformer.blocks."},
              .router = "ffn.router.layer.weight",
              .experts = "ffn.experts.mlp.",
              .split = {},
              .packed_as = packing::flat,
              .packed = {"w1", "v1", "w2"}},
};

}  // namespace moetier
