#pragma once
// GLM-4.5, 4.6, 4.7 (MoE): as DeepSeek-V3.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_glm4_moe = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"glm4_moe"};
  return f;
}();

}  // namespace moetier
