#pragma once
// The coordinator's border as its process sets it up and watches it: options of the RPC server from
// settings and certificates, its notices as log lines, its counters as figures for the metrics.
// Thread: any.

#include "actors/config/settings.hpp"
#include "actors/http/border_probe.hpp"
#include "actors/log/event_log.hpp"
#include "actors/roles/link_security.hpp"
#include "coordinator/rpc/rpc_server.hpp"

namespace moetier::roles {

// Requires: the log outlives the server. reason::config_invalid.
expected<coordinator::rpc_options> rpc_options_from(const config::settings& s,
                                                    const link_security& security, event_log& log);

http::border_figures border_figures_of(const coordinator::rpc_counters& counters,
                                       const link_security& security);

}  // namespace moetier::roles
