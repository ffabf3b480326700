#pragma once
// GLM-5-Next, multimodal: as DeepSeek-V3, with a clamp in every expert.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_glm5_next = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"glm5_next", "glm5_next_text"};
  f.limit_told = true;
  f.names.stems = {"model.language_model.layers.", "model.layers."};
  return f;
}();

}  // namespace moetier
