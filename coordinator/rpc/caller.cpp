#include "coordinator/rpc/caller.hpp"

#include <fmt/core.h>

namespace moetier::coordinator {

namespace {

constexpr const char* k_not_listed = "this certificate's name is none of security.administrators";

}  // namespace

expected<void> caller::may_look(const char* call) const {
  if (by != link_kind::tls || administrator) return {};
  return fail(reason::denied, call, k_not_listed);
}

expected<void> caller::may_change(const char* call) const {
  if (by == link_kind::local_socket || (by == link_kind::tls && administrator)) return {};
  if (by == link_kind::tls) return fail(reason::denied, call, k_not_listed);
  return fail(reason::denied, call,
              "without TLS, changes are taken over the coordinator's Unix socket alone");
}

expected<std::string> caller::tenant(const std::string& asked) const {
  if (by != link_kind::tls) return asked;
  if (asked != k_unnamed_tenant && asked != name) {
    return fail(reason::denied, fmt::format("tenant {}", asked),
                fmt::format("the certificate names {}", name));
  }
  return name;
}

}  // namespace moetier::coordinator
