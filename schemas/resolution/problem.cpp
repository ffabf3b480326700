#include "schemas/resolution/problem.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schemas/base/limits.hpp"
#include "schemas/resolution/canonical_fields.hpp"

namespace moetier::resolution {

problem problem_of(const model_description& m, answer_mode mode, dtype hidden) {
  const auto clamped = [](const std::vector<float>& limits) {
    return std::any_of(limits.begin(), limits.end(), [](float limit) { return limit > 0; });
  };
  const bool alpha_beta = m.activation.kind == activation_kind::swiglu_bias ||
                          m.activation.kind == activation_kind::situ;
  return {.quant = m.format.quant,
          .stored = m.format.stored,
          .dtype_act = hidden,
          .hidden_size = m.hidden_size,
          .intermediate_size = m.intermediate_size,
          .num_experts = m.experts,
          .top_k = m.top_k,
          .expert_bias = m.expert_bias,
          .activation = m.activation.kind,
          .constant_alpha = alpha_beta,
          .constant_beta = alpha_beta,
          .constant_clamp = m.activation.constants.limit > 0 || clamped(m.limits),
          .routing = m.routing.method,
          .groups = m.routing.groups,
          .groups_kept = m.routing.groups_kept,
          .weight_at = m.weight_at,
          .return_mode = mode,
          .router_width = m.router_width};
}

expected<void> check_problem(const problem& p) {
  struct bound {
    const char* name;
    std::uint32_t given;
    std::uint32_t most;
  };
  for (const bound& b : {bound{"hidden_size", p.hidden_size, k_hidden_max},
                         bound{"intermediate_size", p.intermediate_size, k_intermediate_max},
                         bound{"num_experts", p.num_experts, k_experts_max},
                         bound{"top_k", p.top_k, std::min(p.num_experts, k_top_k_max)}}) {
    if (b.given == 0 || b.given > b.most)
      return fail(reason::invalid_argument, b.name, b.given, fmt::format("1 to {}", b.most));
  }
  return {};
}

std::string canonical_text(const problem& p) {
  canonical_fields text("moetier problem 1");
  walk(p, text);
  return text.take();
}

std::uint64_t hash_of(const problem& p) {
  const std::string text = canonical_text(p);
  return first_64_bits(sha256(std::as_bytes(std::span(text.data(), text.size()))));
}

}  // namespace moetier::resolution
