#pragma once
// Ling and Ring hybrid: as DeepSeek-V3 under other names.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_bailing_hybrid = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"bailing_hybrid"};
  f.experts_key = "num_experts";
  f.bias_flag = "moe_router_enable_expert_bias";
  f.shared_count_key = "num_shared_experts";
  f.names.selection_bias = "mlp.gate.expert_bias";
  return f;
}();

}  // namespace moetier
