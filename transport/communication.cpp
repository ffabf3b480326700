#include "transport/communication.hpp"

namespace moetier::transport {

std::string_view comm_status_name(comm_status s) noexcept {
  switch (s) {
    case comm_status::ok: return "ok";
    case comm_status::no_credit: return "no_credit";
    case comm_status::sequence: return "sequence";
    case comm_status::capacity: return "capacity";
    case comm_status::unknown_member: return "unknown_member";
    case comm_status::peer_lost: return "peer_lost";
    case comm_status::timeout: return "timeout";
    case comm_status::stale: return "stale";
    case comm_status::plan_mismatch: return "plan_mismatch";
    case comm_status::peer_refused: return "peer_refused";
    case comm_status::corrupt: return "corrupt";
    case comm_status::closed: return "closed";
  }
  return "unknown";
}

}  // namespace moetier::transport
