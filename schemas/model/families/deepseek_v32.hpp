#pragma once
// DeepSeek-V3.2: to the MoE layers the same as V3.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_deepseek_v32 = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"deepseek_v32"};
  return f;
}();

}  // namespace moetier
