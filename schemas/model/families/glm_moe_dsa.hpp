#pragma once
// GLM-5 with sparse attention: as DeepSeek-V3.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_glm_moe_dsa = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"glm_moe_dsa"};
  return f;
}();

}  // namespace moetier
