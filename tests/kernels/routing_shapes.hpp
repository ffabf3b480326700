#pragma once
// The methods that choose by score, at shapes of models and at odd ones, with random rows: what the
// property and the difference tests of routing run over.

#include <random>

#include "tests/kernels/routing_case.hpp"

namespace moetier::kernels {

struct routing_shape {
  routing_params params;
  bool biased = false;
  bool scaled = false;
};

inline std::vector<routing_shape> routing_shapes() {
  using m = routing_method;
  std::vector<routing_shape> shapes;
  const auto add = [&](routing_rule rule, std::uint32_t experts, std::uint32_t k,
                       bool biased = false, bool scaled = false) {
    shapes.push_back({{.rule = rule, .experts = experts, .top_k = k}, biased, scaled});
  };
  for (const m method : {m::default_softmax, m::renormalize, m::renormalize_naive, m::llama4,
                         m::sigmoid_renorm, m::minimax2, m::sqrt_softplus, m::deepseek_v4}) {
    for (const auto& [experts, k] : {std::pair{1U, 1U},
                                     {8U, 2U},
                                     {33U, 7U},
                                     {60U, 4U},
                                     {128U, 8U},
                                     {256U, 9U},
                                     {300U, 17U},
                                     {512U, 16U}})
      add({.method = method}, experts, k);
  }
  for (const m method : {m::minimax2, m::sqrt_softplus, m::deepseek_v4, m::deepseek_v3}) {
    add({.method = method, .scaling = 1.5F}, 256, 8, true);
    add({.method = method, .scaling = 2.5F}, 384, 6, true);
    add({.method = method}, 7, 7, true);
    add({.method = method, .epsilon = 1e-6F}, 1000, 32, true);
  }
  for (const bool biased : {false, true}) {
    for (const bool renormalise : {false, true}) {
      const auto v3 = [&](std::uint32_t groups, std::uint32_t kept) {
        return routing_rule{.method = m::deepseek_v3,
                            .renormalise = renormalise,
                            .scaling = 2.5F,
                            .groups = groups,
                            .groups_kept = kept};
      };
      add(v3(8, 4), 256, 8, biased);
      add(v3(8, 8), 256, 8, biased);
      add(v3(4, 2), 12, 3, biased);
      add(v3(5, 3), 65, 6, biased);
      add(v3(40, 7), 80, 4, biased);
      add(v3(6, 2), 6, 2, biased);
    }
  }
  for (const std::uint32_t kept : {1U, 3U, 8U})
    add({.method = m::deepseek_v2, .scaling = 16, .groups = 8, .groups_kept = kept}, 160, 6);
  add({.method = m::deepseek_v2}, 64, 6);
  add({.method = m::deepseek_v2, .groups = 40, .groups_kept = 3}, 200, 6);
  for (const bool renormalise : {false, true}) {
    add({.method = m::softmax_group, .renormalise = renormalise, .groups = 8, .groups_kept = 4},
        128, 8);
    add({.method = m::softmax_group, .renormalise = renormalise, .scaling = 3}, 96, 5);
    add({.method = m::sigmoid_renorm, .renormalise = renormalise, .epsilon = 1e-6F}, 64, 8);
  }
  add({.method = m::softmax_bias, .epsilon = 1e-12F}, 64, 6, true);
  add({.method = m::softmax_bias, .epsilon = 0.5F}, 16, 2, true);
  add({.method = m::softmax_bias_raw, .scaling = 6, .identity_experts = 32}, 64, 12, true);
  add({.method = m::softmax_bias_raw, .scaling = 6, .identity_experts = 1}, 1, 2);
  for (const float power : {0.5F, 1.0F, 2.0F, 3.5F})
    add({.method = m::softmax_pnorm, .power = power}, 16, 4);
  for (const float jitter : {0.01F, 0.06F, 0.25F}) {
    add({.method = m::sparse_mixer, .epsilon = jitter}, 16, 2);
    add({.method = m::sparse_mixer, .epsilon = jitter}, 45, 3);
  }
  add({.method = m::renormalize}, 128, 8, false, true);
  return shapes;
}

inline layer_routing layer_of(const routing_shape& shape, std::mt19937& random) {
  std::normal_distribution<float> normal;
  layer_routing layer;
  if (shape.biased) {
    const bool small = shape.params.rule.method >= routing_method::softmax_group;
    layer.bias.resize(shape.params.columns());
    for (float& b : layer.bias) b = (small ? 0.02F : 0.2F) * normal(random);
  }
  if (shape.scaled) {
    layer.expert_scale.resize(shape.params.experts);
    for (float& c : layer.expert_scale) c = normal(random);
  }
  return layer;
}

// Rows of several kinds by turns: plain, many ties, all negative, shifted far, with excluded
// experts, with subnormals and zeros of both signs.
inline std::vector<float> rows_of(std::uint32_t columns, std::uint32_t tokens,
                                  std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> logits(std::size_t{columns} * tokens);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    float& x = logits[i];
    x = normal(random);
    switch (i / columns % 6) {
      case 1: x = std::round(x); break;
      case 2: x = -std::fabs(x) - 1.0F; break;
      case 3: x += 40.0F; break;
      case 4:
        if (random() % 3 == 0) x = -std::numeric_limits<float>::infinity();
        break;
      case 5:
        if (random() % 2 == 0) x *= 1e-39F;
        if (random() % 4 == 0) x = random() % 2 == 0 ? 0.0F : -0.0F;
        break;
      default: break;
    }
  }
  return logits;
}

}  // namespace moetier::kernels
