#pragma once
// Qwen4-exp, multimodal: as Qwen3.5-MoE, normalised unless told otherwise.
// Thread: any (constants).

#include "schemas/model/families/qwen3_5_moe.hpp"

namespace moetier {

inline constexpr family k_family_qwen4_exp = [] {
  family f = k_family_qwen3_5_moe;
  f.model_types = {"qwen4_exp", "qwen4_exp_text"};
  f.norm = norm_rule::unless_told;
  return f;
}();

}  // namespace moetier
