#pragma once
// Phi-3.5-MoE: one arg-max after the other, always two of them.
// Thread: any (constants).

#include "schemas/model/families/mixtral.hpp"

namespace moetier {

// Written out, as clang 14 takes no constant in which an optional was emptied.
inline constexpr family k_family_phimoe{
    .model_types = {"phimoe"},
    .intermediate_key = k_family_mixtral.intermediate_key,
    .experts_key = k_family_mixtral.experts_key,
    .top_k_fixed = 2,
    .normalised = routing_method::sparse_mixer,
    .raw = routing_method::sparse_mixer,
    .epsilon_key = "router_jitter_noise",
    .epsilon = std::nullopt,
    .names = k_family_mixtral.names,
};

}  // namespace moetier
