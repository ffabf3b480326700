#pragma once
// Hunyuan 3: as DeepSeek-V3 without groups, always normalised.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_hy_v3 = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"hy_v3"};
  f.experts_key = "num_experts";
  f.norm = norm_rule::always;
  f.grouped = false;
  f.scaling_key = "router_scaling_factor";
  f.bias_flag = "moe_router_enable_expert_bias";
  f.required = {{{"route_norm", "true"}, {"moe_router_use_sigmoid", "true"}}};
  f.shared_count_key = "num_shared_experts";
  f.names.router = "mlp.router.gate.weight";
  f.names.selection_bias = "mlp.expert_bias";
  f.names.shared = "mlp.shared_mlp.";
  return f;
}();

}  // namespace moetier
