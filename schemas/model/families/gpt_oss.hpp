#pragma once
// gpt-oss: softmax over the k chosen logits, which have a bias; experts have biases, a biased and
// clamped swiglu, and gate and up that alternate.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_gpt_oss{
    .model_types = {"gpt_oss"},
    .intermediate_key = "intermediate_size",
    .experts_key = "num_local_experts",
    .normalised = routing_method::renormalize,
    .raw = routing_method::renormalize,
    .activation = activation_kind::swiglu_bias,
    .constants = {.alpha = 1.702F, .beta = 1.0F, .limit = 7.0F},
    .expert_bias = true,
    .names = {.router = "mlp.router.weight",
              .router_bias = "mlp.router.bias",
              .split = {},
              .packed_as = packing::columns_interleaved},
};

}  // namespace moetier
