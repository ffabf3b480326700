#pragma once
// Mixtral (8x7B, 8x22B): softmax over the k chosen logits.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_mixtral{
    .model_types = {"mixtral"},
    .intermediate_key = "intermediate_size",
    .experts_key = "num_local_experts",
    .normalised = routing_method::renormalize,
    .raw = routing_method::renormalize,
    .names = {.router = "block_sparse_moe.gate.weight",
              .experts = "block_sparse_moe.experts.",
              .split = {"w1", "w3", "w2"},
              .packed_as = packing::none},
};

}  // namespace moetier
