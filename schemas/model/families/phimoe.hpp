#pragma once
// Phi-3.5-MoE: one arg-max after the other, always two of them.
// Thread: any (constants).

#include "schemas/model/families/mixtral.hpp"

namespace moetier {

inline constexpr family k_family_phimoe = [] {
  family f = k_family_mixtral;
  f.model_types = {"phimoe"};
  f.top_k_fixed = 2;
  f.normalised = f.raw = routing_method::sparse_mixer;
  f.epsilon_key = "router_jitter_noise";
  f.epsilon = std::nullopt;
  return f;
}();

}  // namespace moetier
