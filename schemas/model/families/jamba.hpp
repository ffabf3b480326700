#pragma once
// Jamba: softmax over all experts, not divided; every expert_layer_period-th layer.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_jamba{
    .model_types = {"jamba"},
    .intermediate_key = "intermediate_size",
    .layers = layer_rule::period,
    .normalised = routing_method::default_softmax,
    .names = {.router = "feed_forward.router.weight", .experts = "feed_forward.experts."},
};

}  // namespace moetier
