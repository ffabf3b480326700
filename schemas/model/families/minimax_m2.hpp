#pragma once
// MiniMax-M2: sigmoid with a selection bias, normalised.
// Thread: any (constants).

#include "schemas/model/families/mixtral.hpp"

namespace moetier {

inline constexpr family k_family_minimax_m2 = [] {
  family f = k_family_mixtral;
  f.model_types = {"minimax_m2"};
  f.normalised = f.raw = routing_method::minimax2;
  f.scoring = "sigmoid";
  f.bias_flag = "use_routing_bias";
  f.names.selection_bias = "block_sparse_moe.e_score_correction_bias";
  return f;
}();

}  // namespace moetier
