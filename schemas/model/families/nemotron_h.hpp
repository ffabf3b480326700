#pragma once
// Nemotron-H: experts without a gate, squared relu; in some models they read and write a latent
// vector that the attention side projects to and from.
// Thread: any (constants).

#include "schemas/model/families/deepseek_v3.hpp"

namespace moetier {

inline constexpr family k_family_nemotron_h = [] {
  family f = k_family_deepseek_v3;
  f.model_types = {"nemotron_h"};
  f.latent_key = "moe_latent_size";
  f.layers = layer_rule::pattern;
  f.activation = activation_kind::relu2;
  f.activation_key = "mlp_hidden_act";
  f.activation_names = {"relu2"};
  f.shared_count_key = {};
  f.shared_size_key = "moe_shared_expert_intermediate_size";
  f.names.stems = {"backbone.layers.", "model.layers."};
  f.names.router = "mixer.gate.weight";
  f.names.selection_bias = "mixer.gate.e_score_correction_bias";
  f.names.experts = "mixer.experts.";
  f.names.split = {"", "up_proj", "down_proj"};
  f.names.packed_as = packing::none;
  f.names.shared = "mixer.shared_experts.";
  f.names.shared_split = f.names.split;
  return f;
}();

}  // namespace moetier
