#include "kernels/activation/activation_arguments.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

struct one_constant {
  std::string_view name;
  constant_support declared;
  std::span<const float> values;
};

expected<void> check_one(std::string_view owner, activation_kind kind, const one_constant& c,
                         std::size_t experts) {
  const auto refuse = [&](std::string_view what) {
    return fail(reason::activation_invalid,
                fmt::format("{} {} {} of {}", owner, what, c.name, activation_name(kind)));
  };
  if (c.values.empty()) return {};
  if (c.declared == constant_support::unsupported) return refuse("does not execute");
  if (c.values.size() != 1 && c.values.size() != experts) {
    return fail(reason::activation_invalid,
                fmt::format("{} values of {} for {} experts of {}; allowed: 1, {}", c.values.size(),
                            c.name, experts, owner, experts));
  }
  const auto differs = [&](float value) { return value != c.values.front(); };
  if (c.declared == constant_support::scalar &&
      std::any_of(c.values.begin(), c.values.end(), differs)) {
    return refuse("takes one value for all experts, given are different");
  }
  return {};
}

std::optional<float> value_of(std::span<const float> values, std::size_t expert) {
  if (values.empty()) return std::nullopt;
  return values.size() == 1 ? values[0] : values[expert];
}

}  // namespace

expected<void> activation_arguments(std::string_view owner, activation_kind kind,
                                    const activation_support& declared, const given_vectors& given,
                                    std::span<activation_constants> out) {
  MOETIER_ASSERT(!out.empty());
  for (const one_constant& c : {one_constant{"alpha", declared.alpha, given.alpha},
                                {"beta", declared.beta, given.beta},
                                {"limit", declared.limit, given.limit}}) {
    if (auto checked = check_one(owner, kind, c, out.size()); !checked)
      return unexpected_error(checked.error());
  }
  for (std::size_t e = 0; e < out.size(); ++e) {
    const auto rule = check_activation(kind, {.alpha = value_of(given.alpha, e),
                                              .beta = value_of(given.beta, e),
                                              .limit = value_of(given.limit, e)});
    if (!rule) return unexpected_error(rule.error());
    out[e] = rule->constants;
  }
  return {};
}

}  // namespace moetier::kernels
