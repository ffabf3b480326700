#pragma once
// Granite-MoE: softmax over the k chosen logits; two tensors hold all experts of a layer.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_granitemoe{
    .model_types = {"granitemoe"},
    .intermediate_key = "intermediate_size",
    .experts_key = "num_local_experts",
    .normalised = routing_method::renormalize,
    .raw = routing_method::renormalize,
    .names = {.router = "block_sparse_moe.router.layer.weight",
              .experts = "block_sparse_moe.",
              .split = {},
              .packed = {"input_linear", "", "output_linear"},
              .packed_end = ".weight"},
};

}  // namespace moetier
