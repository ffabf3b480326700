#include "actors/http/border_probe.hpp"

#include <string>

namespace moetier::http {

void add_border(metric_text& m, const border_figures& f) {
  m.gauge("coordinator_connections", "Open RPC connections.");
  m.sample(f.connections);
  m.counter("coordinator_handshakes_refused_total", "TLS handshakes that failed, by why.");
  for (const auto& [why, count] : f.handshakes_refused) {
    m.sample(count, {{"reason", std::string(why)}});
  }
  m.counter("coordinator_connections_ended_total",
            "RPC connections that the coordinator ended or did not take, by why.");
  for (const auto& [why, count] : f.connections_ended) {
    m.sample(count, {{"reason", std::string(why)}});
  }
  m.counter("coordinator_calls_total", "RPC calls.");
  m.sample(f.calls);
  m.counter("coordinator_calls_refused_total", "RPC calls that ended in a status other than OK.");
  m.sample(f.calls_refused);
  m.counter("coordinator_calls_denied_total", "Of those, calls that the caller has no right to.");
  m.sample(f.calls_denied);
  if (f.certificates_left_s.empty()) return;
  m.gauge("coordinator_certificate_left_seconds", "Until a link's certificate ends.");
  for (const auto& [link, left] : f.certificates_left_s) {
    m.sample(left, {{"link", std::string(link)}});
  }
}

}  // namespace moetier::http
