#pragma once
// Hunyuan-A13B: softmax, top-k, divided by their sum; sizes may be lists by layer.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_hunyuan_v1_moe{
    .model_types = {"hunyuan_v1_moe"},
    .intermediate_key = "intermediate_size",
    .top_k_key = "moe_topk",
    .required = {{{"use_mixed_mlp_moe", "true"}}},
    .shared_count_key = "num_shared_expert",
    .shared_count_absent = 1,
    .names = {.router = "mlp.gate.wg.weight", .shared = "mlp.shared_mlp."},
};

}  // namespace moetier
