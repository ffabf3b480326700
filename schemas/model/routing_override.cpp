#include "schemas/model/routing_override.hpp"

#include <cmath>

#include <fmt/format.h>

namespace moetier {
namespace {

bool is_grouped(routing_method method) noexcept {
  return method == routing_method::deepseek_v3 || method == routing_method::deepseek_v2 ||
         method == routing_method::softmax_group;
}

std::optional<routing_flaw> group_flaw(const routing_rule& rule, std::uint32_t experts,
                                       std::uint32_t top_k) {
  if (rule.groups == 0 || experts % rule.groups != 0)
    return routing_flaw{"groups", fmt::format("{}", rule.groups),
                        fmt::format("a divisor of the {} experts", experts)};
  // One group is always kept whole.
  if (rule.groups == 1) return std::nullopt;
  if (rule.groups_kept == 0 || rule.groups_kept > rule.groups)
    return routing_flaw{"groups_kept", fmt::format("{}", rule.groups_kept),
                        fmt::format("1 to {}", rule.groups)};
  const std::uint32_t left = experts / rule.groups * rule.groups_kept;
  if (top_k > left)
    return routing_flaw{"groups_kept", fmt::format("{}", rule.groups_kept),
                        fmt::format("groups with at least {} experts; these have {}", top_k, left)};
  return std::nullopt;
}

}  // namespace

std::optional<routing_flaw> find_flaw(const routing_rule& rule, std::uint32_t experts,
                                      std::uint32_t top_k) {
  if (rule.method == routing_method::unspecified || routing_method_name(rule.method).empty())
    return routing_flaw{"method", fmt::format("{}", static_cast<unsigned>(rule.method)),
                        "a routing method but unspecified"};
  if (is_grouped(rule.method)) {
    if (auto flaw = group_flaw(rule, experts, top_k)) return flaw;
  } else if (rule.groups != 1) {
    return routing_flaw{
        "groups", fmt::format("{}", rule.groups),
        fmt::format("1, as method {} has no groups", routing_method_name(rule.method))};
  }
  if (!std::isfinite(rule.scaling) || rule.scaling == 0.0F)
    return routing_flaw{"scaling", fmt::format("{}", rule.scaling), "a finite number but 0"};
  const bool mixer = rule.method == routing_method::sparse_mixer;
  if (!std::isfinite(rule.epsilon) || rule.epsilon < 0.0F || (mixer && rule.epsilon == 0.0F))
    return routing_flaw{"epsilon", fmt::format("{}", rule.epsilon),
                        mixer ? "a finite number above 0" : "a finite number, 0 or above"};
  if (!std::isfinite(rule.power) || !(rule.power > 0.0F))
    return routing_flaw{"power", fmt::format("{}", rule.power), "a finite number above 0"};
  if (rule.identity_experts != 0 && rule.method != routing_method::softmax_bias_raw)
    return routing_flaw{"method", std::string(routing_method_name(rule.method)),
                        "softmax_bias_raw, as the model has identity experts"};
  return std::nullopt;
}

expected<model_description> apply_routing(const routing_override& given, model_description model) {
  if (given.empty()) return model;
  routing_rule& rule = model.routing;
  rule.method = given.method.value_or(rule.method);
  rule.renormalise = given.renormalise.value_or(rule.renormalise);
  rule.scaling = given.scaling.value_or(rule.scaling);
  rule.epsilon = given.epsilon.value_or(rule.epsilon);
  rule.power = given.power.value_or(rule.power);
  rule.groups = given.groups.value_or(rule.groups);
  rule.groups_kept = given.groups_kept.value_or(rule.groups_kept);
  if (const auto flaw = find_flaw(rule, model.experts, model.top_k))
    return fail(reason::config_invalid, fmt::format("model.routing.{}", flaw->parameter),
                flaw->value, flaw->allowed);
  model.fingerprint = fingerprint_of(model);
  return model;
}

}  // namespace moetier
