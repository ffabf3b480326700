#include "schemas/model/activation.hpp"

#include <array>
#include <cmath>

#include <fmt/core.h>

namespace moetier {
namespace {

constexpr std::array<std::string_view, k_activation_kinds> k_names{
    "swiglu", "geglu",       "gelu", "relu",        "silu",
    "relu2",  "swiglu_bias", "situ", "swiglu_step", "geglu_tanh"};

// Which constants a kind has; required ones have no default.
struct constants_of_kind {
  bool alpha_beta;  // required
  bool caps;        // alpha and beta are caps: above 0
  bool limit;       // optional
};

constexpr constants_of_kind has(activation_kind kind) noexcept {
  switch (kind) {
    case activation_kind::swiglu:
    case activation_kind::swiglu_step: return {false, false, true};
    case activation_kind::swiglu_bias: return {true, false, true};
    case activation_kind::situ: return {true, true, false};
    default: return {false, false, false};
  }
}

unexpected_error invalid(activation_kind kind, std::string_view constant, std::string_view what) {
  return fail(reason::activation_invalid,
              fmt::format("{} of {} {}", constant, activation_name(kind), what));
}

expected<void> check_one(activation_kind kind, std::string_view name,
                         const std::optional<float>& given, bool known, bool required,
                         bool above_zero) {
  if (!given) {
    if (required) return invalid(kind, name, "is missing");
    return {};
  }
  if (!known) return invalid(kind, name, "is given; this kind has none");
  if (!std::isfinite(*given)) return invalid(kind, name, "is not finite");
  if (above_zero && !(*given > 0)) {
    return invalid(kind, name, fmt::format("is {}; it must be above 0", *given));
  }
  return {};
}

}  // namespace

std::string_view activation_name(activation_kind kind) noexcept {
  const auto at = static_cast<std::size_t>(kind);
  return at < k_names.size() ? k_names[at] : std::string_view();
}

expected<activation_rule> check_activation(activation_kind kind, const given_constants& given) {
  if (static_cast<std::size_t>(kind) >= k_activation_kinds) {
    return fail(reason::activation_invalid,
                fmt::format("kind {} is not known", static_cast<unsigned>(kind)));
  }
  const constants_of_kind k = has(kind);
  const auto checks = {check_one(kind, "alpha", given.alpha, k.alpha_beta, k.alpha_beta, k.caps),
                       check_one(kind, "beta", given.beta, k.alpha_beta, k.alpha_beta, k.caps),
                       check_one(kind, "limit", given.limit, k.limit, false, true)};
  for (const auto& checked : checks) {
    if (!checked) return unexpected_error(checked.error());
  }
  return activation_rule{.kind = kind,
                         .constants = {.alpha = given.alpha.value_or(0.0F),
                                       .beta = given.beta.value_or(0.0F),
                                       .limit = given.limit.value_or(0.0F)}};
}

}  // namespace moetier
