// Method and parameters of routing, from a configuration's keys.

#include <array>

#include <fmt/core.h>

#include "schemas/base/limits.hpp"
#include "schemas/model/config_rules.hpp"
#include "schemas/model/routing_override.hpp"

namespace moetier {
namespace {

// Keys by which families name what turns logits into scores.
constexpr std::array<std::string_view, 4> k_scoring_keys{
    "scoring_func", "score_function", "moe_router_activation_func", "moe_router_activation"};

expected<bool> norm_of(const config_fields& config, const family& kin) {
  if (kin.norm == norm_rule::always) return true;
  constexpr std::string_view k_usual = "norm_topk_prob";
  constexpr std::string_view k_other = "moe_renormalize";
  const std::string_view key =
      config.find(k_usual) != nullptr || config.find(k_other) == nullptr ? k_usual : k_other;
  if (kin.norm == norm_rule::must_be_told && config.find(key) == nullptr)
    return unsupported_field(config.name(key), "missing", "true or false");
  auto norm = config.flag(key, kin.norm == norm_rule::unless_told);
  if (!norm) return norm;
  if (*norm && kin.norm == norm_rule::never_allowed)
    return unsupported_field(config.name(key), "true",
                             "false, as implementations differ on the factor");
  if (key == k_usual && config.find(k_other) != nullptr) {
    const auto other = config.flag(k_other, *norm);
    if (!other) return other;
    if (*other != *norm)
      return unsupported_field(config.name(k_other), fmt::format("{}", *other),
                               fmt::format("{} as {} says", *norm, config.name(k_usual)));
  }
  return norm;
}

expected<float> real_or(const config_fields& config, std::string_view key,
                        std::optional<float> absent) {
  const auto value = config.real(key);
  if (!value) return unexpected_error(value.error());
  if (*value) return **value;
  if (!absent) return unsupported_field(config.name(key), "missing", "a finite number");
  return *absent;
}

expected<void> read_groups(const config_fields& config, const family& kin, std::uint32_t experts,
                           routing_rule& rule) {
  constexpr std::array<std::string_view, 2> k_keys{"n_group", "num_expert_group"};
  error problem;
  if (!take(config.agreed(kin.groups_key, k_keys, {1, experts}, "the number of groups"),
            rule.groups, problem) ||
      !take(config.count("topk_group", {1, rule.groups}), rule.groups_kept, problem))
    return unexpected_error(std::move(problem));
  return {};
}

// The key from which a parameter came.
std::string_view key_of(const family& kin, std::string_view parameter) {
  if (parameter == "groups") return kin.groups_key;
  if (parameter == "groups_kept") return "topk_group";
  if (parameter == "scaling") return kin.scaling_key;
  if (parameter == "epsilon") return kin.epsilon_key;
  if (parameter == "power") return kin.power_key;
  return parameter;
}

}  // namespace

expected<routing_rule> routing_of(const config_fields& config, const family& kin,
                                  const model_description& model) {
  error problem;
  for (const std::string_view key : k_scoring_keys) {
    if (!take(config.one_of(key, std::span(&kin.scoring, 1)), problem))
      return unexpected_error(std::move(problem));
  }
  // Where two methods go by one model_type, the key that tells them apart must stand.
  const bool two_methods = !kin.top_methods[1].empty();
  if (!take(config.one_of("topk_method", kin.top_methods, two_methods), problem))
    return unexpected_error(std::move(problem));
  const auto* const top_method = config.find("topk_method");

  routing_rule rule;
  bool norm = true;
  if (!take(norm_of(config, kin), norm, problem)) return unexpected_error(std::move(problem));
  rule.method = norm ? kin.normalised : kin.raw;
  rule.renormalise = norm;
  if (!kin.scaling_key.empty() &&
      !take(real_or(config, kin.scaling_key, kin.scaling_absent), rule.scaling, problem))
    return unexpected_error(std::move(problem));
  if (kin.epsilon_key.empty()) {
    rule.epsilon = *kin.epsilon;
  } else if (!take(real_or(config, kin.epsilon_key, kin.epsilon), rule.epsilon, problem)) {
    return unexpected_error(std::move(problem));
  }
  if (!kin.power_key.empty()) {
    const auto power = config.real(kin.power_key);
    if (!power) return unexpected_error(power.error());
    rule.power = power->value_or(1.0F);
    // Absent, the power is 1; null, there is no norm.
    if (!*power && config.stands(kin.power_key)) rule.method = routing_method::default_softmax;
  }
  const bool greedy = two_methods && *top_method == "greedy";
  if (kin.grouped && !greedy && !take(read_groups(config, kin, model.experts, rule), problem))
    return unexpected_error(std::move(problem));
  if (!kin.identity_key.empty() &&
      !take(config.count(kin.identity_key, {0, k_experts_max - model.experts}),
            rule.identity_experts, problem))
    return unexpected_error(std::move(problem));
  if (const auto flaw = find_flaw(rule, model.experts, model.top_k))
    return unsupported_field(config.name(key_of(kin, flaw->parameter)), flaw->value, flaw->allowed);
  return rule;
}

}  // namespace moetier
