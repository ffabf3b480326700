#pragma once
// Mistral 4: as Mistral Large 4; its library writes packed experts under mlp.
// Thread: any (constants).

#include "schemas/model/families/mistral_large4.hpp"

namespace moetier {

inline constexpr family k_family_mistral4 = [] {
  family f = k_family_mistral_large4;
  f.model_types = {"mistral4", "mistral4_text"};
  f.norm = norm_rule::unless_told;
  f.names = {.shared = "mlp.shared_experts."};
  f.other_names = &k_family_mistral_large4.names;
  return f;
}();

}  // namespace moetier
