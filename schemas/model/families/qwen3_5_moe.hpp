#pragma once
// Qwen3.5-MoE, multimodal: as Qwen2-MoE, always normalised; released packed, FP8 files split.
// Thread: any (constants).

#include "schemas/model/families/qwen2_moe.hpp"

namespace moetier {

inline constexpr family k_family_qwen3_5_moe = [] {
  family f = k_family_qwen2_moe;
  f.model_types = {"qwen3_5_moe", "qwen3_5_moe_text"};
  f.norm = norm_rule::always;
  f.names.stems = {"model.language_model.layers.", "model.layers."};
  return f;
}();

}  // namespace moetier
