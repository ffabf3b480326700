#pragma once
// MiniMax-Text-01 and M1: as Mixtral.
// Thread: any (constants).

#include "schemas/model/families/mixtral.hpp"

namespace moetier {

inline constexpr family k_family_minimax = [] {
  family f = k_family_mixtral;
  f.model_types = {"minimax"};
  return f;
}();

}  // namespace moetier
