#include "coordinator/core/tenants.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace moetier::coordinator {
namespace {

unexpected_error denied(std::string what, std::string who) {
  return fail(reason::denied, std::move(what), std::move(who));
}

}  // namespace

const tenant_limits* find_tenant(const tenant_list& list, std::string_view name) noexcept {
  const auto named = [&](std::string_view match) -> const tenant_limits* {
    const auto at =
        std::find_if(list.begin(), list.end(), [&](const auto& t) { return t.match == match; });
    return at == list.end() ? nullptr : &*at;
  };
  const tenant_limits* own = named(name);
  return own != nullptr ? own : named(k_any_tenant);
}

expected<void> check_claim(const tenant_limits& limits, const tenant_use& use,
                           const session_claim& claim) {
  if (claim.urgency < limits.highest) {
    return denied(fmt::format("deadline class {}", deadline_class_name(claim.urgency)),
                  fmt::format("the highest of tenant {} is {}", claim.tenant,
                              deadline_class_name(limits.highest)));
  }
  const std::uint64_t most = limits.tokens_in_flight;
  if (most != 0 && claim.tokens > most) {
    return denied(fmt::format("a session of {} tokens in flight", claim.tokens),
                  fmt::format("tenant {} may have {}", claim.tenant, most));
  }
  if (use.sessions >= limits.sessions) {
    return fail(reason::no_credit, fmt::format("tenant {} has {} of {} sessions open", claim.tenant,
                                               use.sessions, limits.sessions));
  }
  if (most != 0 && use.tokens + claim.tokens > most) {
    return fail(reason::no_credit,
                fmt::format("tenant {} holds {} tokens in flight and asks for {} more; it may have "
                            "{}",
                            claim.tenant, use.tokens, claim.tokens, most));
  }
  return {};
}

expected<void> check_model(const tenant_limits& limits, std::string_view tenant,
                           const std::vector<std::string>& names) {
  if (limits.models.empty()) return {};
  for (const std::string& name : names) {
    if (std::find(limits.models.begin(), limits.models.end(), name) != limits.models.end()) {
      return {};
    }
  }
  return denied(fmt::format("model {}", names.empty() ? "of no name" : names.front()),
                fmt::format("it is not among the {} of tenant {}", limits.models.size(), tenant));
}

std::uint64_t rate_of_each(const tenant_limits& limits, std::uint32_t sessions) noexcept {
  if (limits.tokens_per_second == 0) return 0;
  return std::max<std::uint64_t>(1, limits.tokens_per_second / std::max(1u, sessions));
}

}  // namespace moetier::coordinator
