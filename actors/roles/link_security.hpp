#pragma once
// Who a process of ours is on its links, from the settings: files loaded, parsed and matched before
// CAF or the RPC server sees them, and what is wrong with them in one sentence. A certificate that
// ends soon is told in the log. Thread: owner.

#include <string>
#include <vector>

#include "actors/config/settings.hpp"
#include "actors/log/event_log.hpp"
#include "schemas/base/error.hpp"
#include "transport/tls/credential.hpp"

namespace moetier::roles {

struct link_security {
  tls::credential_ptr rpc;      // of a coordinator; null = in the clear
  tls::credential_ptr control;  // of both; null = in the clear
};

// reason::certificate_unusable; config_invalid where both zones trust one authority.
expected<link_security> load_coordinator_security(const config::settings& s, event_log& log);
expected<link_security> load_worker_security(const config::settings& s, event_log& log);

// The RPC link's files once more, for the connections to come.
expected<tls::credential_ptr> reload_rpc(const config::settings& s, event_log& log);

// "" for none.
expected<std::string> admin_socket_path(const config::settings& s, event_log& log);

// A model that others may write is not the one that was meant. reason::config_invalid.
expected<void> check_model_folder(const std::string& path);

}  // namespace moetier::roles
