#include "actors/cli/exit_code.hpp"

namespace moetier::cli {

exit_code exit_code_of(const error& e) noexcept {
  switch (e.why) {
    case reason::config_invalid:
    case reason::config_unknown_key:
    case reason::certificate_unusable:
    case reason::state_unusable: return exit_code::usage;
    case reason::coordinator_unreached: return exit_code::unreached;
    case reason::file_unreadable:
    case reason::file_malformed:
    case reason::file_unwritable:
    case reason::model_unsupported:
    case reason::weight_mismatch:
    case reason::activation_invalid:
    case reason::adapter_refused: return exit_code::bad_input;
    case reason::partition_invalid:
    case reason::placement_invalid:
    case reason::backend_unresolved:
    case reason::degrade_forbidden:
    case reason::agreement_failed:
    case reason::carrier_unavailable:
    case reason::memory_insufficient:
    case reason::not_enabled: return exit_code::refused;
    case reason::address_in_use: return exit_code::address_in_use;
    default: break;
  }
  switch (e.code) {
    case status::timeout: return exit_code::deadline;
    case status::degraded: return exit_code::degraded;
    case status::model_mismatch: return exit_code::bad_input;
    case status::denied: return exit_code::refused;
    case status::device: return exit_code::device_lost;
    case status::internal: return exit_code::internal;
    default: return exit_code::failed;
  }
}

}  // namespace moetier::cli
