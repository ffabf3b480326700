#include "actors/log/line_budget.hpp"

#include <utility>

namespace moetier {

bool line_budget::peer_may(std::string_view event, std::string_view peer, time_ns now) {
  if (peer.empty()) return true;
  std::string key(event);
  key += '\n';
  key += peer;
  const auto at = peers_.find(key);
  if (at != peers_.end()) return now - at->second >= k_second;
  if (peers_.size() >= k_peers_max) {
    std::erase_if(peers_, [now](const auto& p) { return now - p.second >= k_second; });
  }
  return true;
}

std::optional<std::uint64_t> line_budget::take(std::string_view event, std::string_view peer,
                                               time_ns now) {
  auto at = events_.find(event);
  if (at == events_.end()) {
    if (events_.size() >= k_events_max) events_.clear();
    at = events_.emplace(std::string(event), of_event{.second_began = now}).first;
  }
  of_event& e = at->second;
  if (now - e.second_began >= k_second) {
    e.second_began = now;
    e.written = 0;
  }
  if (e.written >= k_lines_per_event_and_second || !peer_may(event, peer, now)) {
    ++e.left_out;
    return std::nullopt;
  }
  ++e.written;
  if (!peer.empty() && peers_.size() < k_peers_max) {
    peers_.insert_or_assign(std::string(event) + '\n' + std::string(peer), now);
  }
  return std::exchange(e.left_out, 0);
}

}  // namespace moetier
