#include "schemas/model/routing_override.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/core.h>

namespace moetier {
namespace {

using enum routing_method;

// Which methods read a parameter, as the formulas in routing_rule.hpp say.
constexpr std::array k_grouped{deepseek_v3, deepseek_v2, softmax_group};
constexpr std::array k_scaled{deepseek_v3,   minimax2,      deepseek_v4,     deepseek_v2,
                              sqrt_softplus, softmax_group, softmax_bias_raw};
constexpr std::array k_with_epsilon{deepseek_v3,   minimax2,     sigmoid_renorm, deepseek_v4,
                                    sqrt_softplus, sparse_mixer, softmax_group,  softmax_bias};
constexpr std::array k_with_power{softmax_pnorm};
// The last two are each other's rule with and without the division.
constexpr std::array k_renormalising{deepseek_v3, sigmoid_renorm, softmax_group, default_softmax,
                                     renormalize_naive};

bool reads(std::span<const routing_method> readers, routing_method method) noexcept {
  return std::ranges::find(readers, method) != readers.end();
}

routing_flaw unread(std::string_view parameter, std::string value, routing_method method,
                    std::span<const routing_method> readers) {
  std::string names;
  for (const routing_method one : readers) {
    if (!names.empty()) names += ", ";
    names += routing_method_name(one);
  }
  return {parameter, std::move(value),
          fmt::format("none, as method {} does not read it; read by {}",
                      routing_method_name(method), names)};
}

// What was given although the rule that holds now does not read it. The value that means "without"
// (one group, factor 1) may always be said.
std::optional<routing_flaw> unread_value(const routing_override& given, const routing_rule& rule) {
  const routing_method method = rule.method;
  if (given.renormalise && !reads(k_renormalising, method))
    return unread("renormalise", fmt::format("{}", *given.renormalise), method, k_renormalising);
  if (given.scaling && *given.scaling != 1.0F && !reads(k_scaled, method))
    return unread("scaling", fmt::format("{}", *given.scaling), method, k_scaled);
  if (given.epsilon && !reads(k_with_epsilon, method))
    return unread("epsilon", fmt::format("{}", *given.epsilon), method, k_with_epsilon);
  const bool kept = !rule.renormalise && reads(k_renormalising, method);
  if (given.epsilon && kept)
    return routing_flaw{"epsilon", fmt::format("{}", *given.epsilon),
                        "none without renormalise, as nothing is divided"};
  if (given.power && !reads(k_with_power, method))
    return unread("power", fmt::format("{}", *given.power), method, k_with_power);
  if (given.groups && *given.groups != 1 && !reads(k_grouped, method))
    return unread("groups", fmt::format("{}", *given.groups), method, k_grouped);
  if (given.groups_kept && *given.groups_kept != 1 && !reads(k_grouped, method))
    return unread("groups_kept", fmt::format("{}", *given.groups_kept), method, k_grouped);
  return std::nullopt;
}

std::optional<routing_flaw> group_flaw(const routing_rule& rule, std::uint32_t experts,
                                       std::uint32_t top_k) {
  if (rule.groups == 0 || experts % rule.groups != 0)
    return routing_flaw{"groups", fmt::format("{}", rule.groups),
                        fmt::format("a divisor of the {} experts", experts)};
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
  const std::string_view method = routing_method_name(rule.method);
  if (reads(k_grouped, rule.method)) {
    if (auto flaw = group_flaw(rule, experts, top_k)) return flaw;
  } else if (rule.groups != 1) {
    return routing_flaw{"groups", fmt::format("{}", rule.groups),
                        fmt::format("1, as method {} has no groups", method)};
  } else if (rule.groups_kept != 1) {
    return routing_flaw{"groups_kept", fmt::format("{}", rule.groups_kept),
                        fmt::format("1, as method {} has no groups", method)};
  }
  if (!std::isfinite(rule.scaling) || rule.scaling <= 0.0F)
    return routing_flaw{"scaling", fmt::format("{}", rule.scaling), "a finite number above 0"};
  if (rule.scaling != 1.0F && !reads(k_scaled, rule.method))
    return routing_flaw{"scaling", fmt::format("{}", rule.scaling),
                        fmt::format("1, as method {} does not scale", method)};
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
  const auto refuse = [](const routing_flaw& flaw) {
    return fail(reason::config_invalid, fmt::format("model.routing.{}", flaw.parameter), flaw.value,
                flaw.allowed);
  };
  rule.method = given.method.value_or(rule.method);
  rule.renormalise = given.renormalise.value_or(rule.renormalise);
  if (given.renormalise && (rule.method == renormalize_naive || rule.method == default_softmax)) {
    const routing_method told = *given.renormalise ? renormalize_naive : default_softmax;
    if (given.method && told != rule.method)
      return refuse({"renormalise", fmt::format("{}", *given.renormalise),
                     fmt::format("{} with method {}", !*given.renormalise,
                                 routing_method_name(rule.method))});
    rule.method = told;
  }
  rule.scaling = given.scaling.value_or(rule.scaling);
  rule.epsilon = given.epsilon.value_or(rule.epsilon);
  rule.power = given.power.value_or(rule.power);
  rule.groups = given.groups.value_or(rule.groups);
  rule.groups_kept = given.groups_kept.value_or(rule.groups == 1 ? 1 : rule.groups_kept);
  if (const auto flaw = unread_value(given, rule)) return refuse(*flaw);
  if (const auto flaw = find_flaw(rule, model.experts, model.top_k)) return refuse(*flaw);
  model.fingerprint = fingerprint_of(model);
  return model;
}

}  // namespace moetier
