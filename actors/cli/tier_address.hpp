#pragma once
// How a command reaches its tier: in the clear on loopback, with the settings' certificates
// (security.rpc) where there are some, over a Unix socket without them; and, for what changes the
// tier, over the coordinator's own socket when it runs on this machine. Thread: owner.

#include <memory>
#include <string>

#include "actors/cli/command_line.hpp"
#include "schemas/base/error.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {

using reached = expected<std::unique_ptr<client::tier_link>>;

reached reach(const std::string& address, const config::link_files& tls, duration_ns limit);
inline reached reach(const command_line& line, duration_ns limit) {
  return reach(line.address, line.tls, limit);
}

// A tier without TLS takes changes over its socket alone; it says there, to who shares its machine,
// where that lies.
reached reach_for_change(const command_line& line, duration_ns limit);

}  // namespace moetier::cli
