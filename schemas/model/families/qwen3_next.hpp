#pragma once
// Qwen3-Next: as Qwen2-MoE. What an absent norm_topk_prob means differs between tools.
// Thread: any (constants).

#include "schemas/model/families/qwen2_moe.hpp"

namespace moetier {

inline constexpr family k_family_qwen3_next = [] {
  family f = k_family_qwen2_moe;
  f.model_types = {"qwen3_next"};
  f.norm = norm_rule::must_be_told;
  return f;
}();

}  // namespace moetier
