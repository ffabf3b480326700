#pragma once
// OLMoE: as Qwen2-MoE, nothing shared; the inner size has another key.
// Thread: any (constants).

#include "schemas/model/family.hpp"

namespace moetier {

inline constexpr family k_family_olmoe{
    .model_types = {"olmoe"},
    .intermediate_key = "intermediate_size",
    .norm = norm_rule::if_told,
};

}  // namespace moetier
