#pragma once
// Tenants: who may ask the tier for how much. A tenant is a name (a certificate's common name; what
// the client says where nothing proves it); its limits stand in the configuration. Pure: the core
// asks these rules with what the tenant holds already. Thread: any (values).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/deadline_class.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::coordinator {

inline constexpr std::string_view k_any_tenant = "*";  // matches every name that no other does

struct tenant_limits {
  std::string match{k_any_tenant};
  std::uint32_t weight = 1;                         // share of workers' time beside others
  deadline_class highest = deadline_class::decode;  // most urgent class it may ask for
  std::uint32_t sessions = k_sessions_max;          // open at once
  std::uint64_t tokens_in_flight = 0;               // of all its sessions together; 0 = no limit
  std::uint64_t tokens_per_second = 0;              // tokens of steps; 0 = no limit
  std::vector<std::string> models;                  // by name or fingerprint; empty = all
  bool operator==(const tenant_limits&) const = default;
};

// The default: one open tenant, with no limits but the tier's.
using tenant_list = std::vector<tenant_limits>;
inline tenant_list open_tenants() {
  tenant_limits open;
  open.sessions = ~0u;
  return {open};
}

// What a tenant's open sessions hold.
struct tenant_use {
  std::uint32_t sessions = 0;
  std::uint64_t tokens = 0;  // that can be in flight at once
};

// The entry of this name, else the one of every name, else null.
const tenant_limits* find_tenant(const tenant_list& list, std::string_view name) noexcept;

// Whether the tenant may open one more session for `tokens` in flight. DENIED for what it may never
// have, OVERLOADED for what others of its sessions hold.
struct session_claim {
  std::string_view tenant;
  deadline_class urgency = deadline_class::decode;
  std::uint64_t tokens = 0;
};
expected<void> check_claim(const tenant_limits& limits, const tenant_use& use,
                           const session_claim& claim);
// `names`: what the served model is called.
expected<void> check_model(const tenant_limits& limits, std::string_view tenant,
                           const std::vector<std::string>& names);

// A tenant's rate is shared evenly by its sessions. 0 = no limit.
std::uint64_t rate_of_each(const tenant_limits& limits, std::uint32_t sessions) noexcept;

}  // namespace moetier::coordinator
