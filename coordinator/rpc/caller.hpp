#pragma once
// Who is at the other end of a connection, as far as the link proves it, and what follows from
// that: whose tenant its sessions are and whether it may change the tier. Thread: any (a value).

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::coordinator {

enum class link_kind : std::uint8_t { clear, local_socket, tls };

struct caller {
  link_kind by = link_kind::clear;
  std::string name{};          // TLS: the certificate's common name
  bool administrator = false;  // TLS: the configuration lists it

  // What concerns everybody: by the local socket, which only the tier's own user can open, or by a
  // certificate that the configuration lists. reason::denied, with the way that is open.
  expected<void> may_change(const char* call) const;

  // What is said of everybody: whoever shares the machine may read it, over TLS administrators.
  expected<void> may_look(const char* call) const;

  // The tenant of its sessions: the certificate's name, where there is one. `asked` is "default" or
  // what the client says of itself; a certificate's owner can be nobody else (reason::denied).
  expected<std::string> tenant(const std::string& asked) const;
};

inline constexpr const char* k_unnamed_tenant = "default";

}  // namespace moetier::coordinator
