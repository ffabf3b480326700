#pragma once
// MiniMax-M3, multimodal: as M2, scaled, with a biased swiglu whose beta is the family's.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_minimax_m3_vl = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"minimax_m3_vl", "minimax_m3_vl_text"};
  f.experts_key = "num_local_experts";
  f.intermediate_key = "intermediate_size";
  f.normalised = f.raw = routing_method::minimax2;
  f.norm = norm_rule::always;
  f.grouped = false;
  f.bias_flag = "use_routing_bias";
  f.activation = activation_kind::swiglu_bias;
  f.activation_names = {"silu", "swigluoai"};
  f.constants.beta = 1.0F;
  f.limit_told = true;
  f.shared_count_key = {};
  f.shared_size_key = "shared_intermediate_size";
  f.names.stems = {"language_model.model.layers.", "model.layers."};
  f.names.router = "block_sparse_moe.gate.weight";
  f.names.selection_bias = "block_sparse_moe.e_score_correction_bias";
  f.names.experts = "block_sparse_moe.experts.";
  f.names.split = {"w1", "w3", "w2"};
  f.names.packed_as = packing::none;
  f.names.shared = "block_sparse_moe.shared_experts.";
  return f;
}();

}  // namespace moetier
