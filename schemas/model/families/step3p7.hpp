#pragma once
// Step-3.5 and 3.7: as MiniMax-M2, scaled; one tensor a projection, clamps by layer that come after
// the activation.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_step3p7 = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"step3p7", "step3p5"};
  f.layers = layer_rule::enumerated;
  f.normalised = f.raw = routing_method::minimax2;
  f.norm = norm_rule::always;
  f.grouped = false;
  f.scaling_key = "moe_router_scaling_factor";
  f.bias_flag = "use_moe_router_bias";
  f.activation = activation_kind::swiglu_step;
  f.limits_key = "swiglu_limits";
  f.shared_limits_key = "swiglu_limits_shared";
  f.required = {{{"norm_expert_weight", "true"}}};
  f.shared_count_key = {};
  f.shared_size_key = "share_expert_dim";
  f.names.router = "moe.gate.weight";
  f.names.selection_bias = "moe.router_bias";
  f.names.experts = "moe.";
  f.names.split = {};
  f.names.packed_as = packing::stacked;
  f.names.packed = {"gate_proj", "up_proj", "down_proj"};
  f.names.packed_end = ".weight";
  f.names.shared = "share_expert.";
  return f;
}();

}  // namespace moetier
