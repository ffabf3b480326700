#pragma once
// MiMo-V2-Flash: as DeepSeek-V3 without shared experts; a null factor means 1.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_mimo_v2_flash = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"mimo_v2_flash"};
  f.scaling_absent = 1.0F;
  return f;
}();

}  // namespace moetier
