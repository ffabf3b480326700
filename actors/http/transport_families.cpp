#include "actors/http/transport_families.hpp"

namespace moetier::http {

void add_transport_families(metric_text& to, const transport::carrier_counters& seen) {
  to.counter("transport_bytes_total", "Bytes over the data plane.");
  to.sample(seen.bytes_sent, {{"direction", "sent"}});
  to.sample(seen.bytes_received, {{"direction", "received"}});
  to.counter("transport_messages_total", "Messages over the data plane.");
  to.sample(seen.messages_sent, {{"direction", "sent"}});
  to.sample(seen.messages_received, {{"direction", "received"}});
  to.counter("transport_stall_seconds_total",
             "Time that rows waited to be sent: for a bank, or for the carrier to let go of one.");
  to.sample(static_cast<double>(seen.stall_ns) / static_cast<double>(k_second),
            {{"direction", "sent"}});
  to.counter("transport_errors_total",
             "What went wrong on the data plane; who leaves with a word is no error.");
  to.sample(seen.frames_dropped, {{"reason", "frame_dropped"}});
  to.sample(seen.late_returns, {{"reason", "late_return"}});
  to.sample(seen.peers_lost, {{"reason", "peer_lost"}});
  to.sample(seen.rows_corrupt, {{"reason", "corrupt"}});
  to.counter("transport_peers_left_total", "Peers that said that they go.");
  to.sample(seen.peers_left);
}

}  // namespace moetier::http
