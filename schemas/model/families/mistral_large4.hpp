#pragma once
// Mistral Large 4, multimodal: softmax inside the best groups; names of the original format.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_mistral_large4{
    .model_types = {"mistral_large4", "mistral_large4_text"},
    .experts_key = "n_routed_experts",
    .layers = layer_rule::after_dense,
    .normalised = routing_method::softmax_group,
    .raw = routing_method::softmax_group,
    .grouped = true,
    .scaling_key = "routed_scaling_factor",
    .shared_count_key = "n_shared_experts",
    .names = {.stems = {"layers.", "language_model.layers."},
              .router = "gate.weight",
              .experts = "experts.",
              .split = {"w1", "w3", "w2"},
              .packed_as = packing::none,
              .shared = "shared_experts.",
              .shared_split = {"w1", "w3", "w2"}},
};

}  // namespace moetier
