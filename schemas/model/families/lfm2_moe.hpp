#pragma once
// LFM2-MoE: sigmoid with a bias, without groups, a larger epsilon; nothing shared.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_lfm2_moe = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"lfm2_moe"};
  f.experts_key = "num_experts";
  f.dense_key = "num_dense_layers";
  f.grouped = false;
  f.epsilon = 1e-6F;
  f.bias_flag = "use_expert_bias";
  f.shared_count_key = {};
  f.names.router = "feed_forward.gate.weight";
  f.names.selection_bias = "feed_forward.expert_bias";
  f.names.experts = "feed_forward.experts.";
  f.names.split = {"w1", "w3", "w2"};
  f.names.packed_as = packing::none;
  f.names.shared = {};
  return f;
}();

}  // namespace moetier
