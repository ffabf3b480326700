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

carrier_counters& carrier_counters::operator+=(const carrier_counters& other) noexcept {
  frames_dropped += other.frames_dropped;
  late_returns += other.late_returns;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  messages_sent += other.messages_sent;
  messages_received += other.messages_received;
  peers_lost += other.peers_lost;
  peers_left += other.peers_left;
  rows_corrupt += other.rows_corrupt;
  stall_ns += other.stall_ns;
  requests_left += other.requests_left;
  return *this;
}

}  // namespace moetier::transport
