#pragma once
// Kimi-Linear: as DeepSeek-V3; experts are w1 (gate), w3 (up), w2 (down), shared ones are not.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_kimi_linear = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"kimi_linear"};
  f.experts_key = "num_experts";
  f.top_k_key = "num_experts_per_token";
  f.groups_key = "num_expert_group";
  f.required = {{{"use_grouped_topk", "true"}}};
  f.shared_count_key = "num_shared_experts";
  f.names.router = "block_sparse_moe.gate.weight";
  f.names.selection_bias = "block_sparse_moe.gate.e_score_correction_bias";
  f.names.experts = "block_sparse_moe.experts.";
  f.names.split = {"w1", "w3", "w2"};
  f.names.packed_as = packing::none;
  f.names.shared = "block_sparse_moe.shared_experts.";
  return f;
}();

}  // namespace moetier
