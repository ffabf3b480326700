#pragma once
// Llama 4 (Scout, Maverick): one expert a token, its input multiplied by the sigmoid; one shared.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_llama4{
    .model_types = {"llama4_text", "llama4"},
    .intermediate_key = "intermediate_size",
    .experts_key = "num_local_experts",
    .layers = layer_rule::listed,
    .normalised = routing_method::llama4,
    .raw = routing_method::llama4,
    .scoring = "sigmoid",
    .weight_at = weight_point::input,
    .shared_count_absent = 1,
    .names = {.router = "feed_forward.router.weight",
              .experts = "feed_forward.experts.",
              .split = {},
              .packed_as = packing::columns,
              .shared = "feed_forward.shared_expert."},
};

}  // namespace moetier
