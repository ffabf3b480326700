#include "coordinator/rpc/outward_error.hpp"

namespace moetier::coordinator {

bool may_leave(reason why) noexcept {
  switch (why) {
    case reason::config_invalid:
    case reason::config_unknown_key:
    case reason::file_unreadable:
    case reason::file_malformed:
    case reason::file_unwritable:
    case reason::weight_mismatch:
    case reason::address_in_use:
    case reason::state_unusable:
    case reason::certificate_unusable:
    case reason::coordinator_unreached:
    case reason::carrier_unavailable:
    case reason::device_lost:
    case reason::internal_error: return false;
    default: return true;
  }
}

error outward(const error& what, std::uint64_t request) {
  error shown = what;
  if (!may_leave(what.why)) {
    shown = make_error(reason::internal_error, "the coordinator's log says more");
    shown.retry_after_ns = what.retry_after_ns;
  }
  shown.request_id = request;
  return shown;
}

}  // namespace moetier::coordinator
