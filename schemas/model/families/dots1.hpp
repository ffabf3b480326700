#pragma once
// dots.llm1: as DeepSeek-V3, but an absent norm_topk_prob means no.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_dots1 = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"dots1"};
  f.norm = norm_rule::if_told;
  return f;
}();

}  // namespace moetier
