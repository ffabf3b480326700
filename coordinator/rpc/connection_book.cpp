#include "coordinator/rpc/connection_book.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"

namespace moetier::coordinator {

connection_book::admission connection_book::admit(time_ns now) {
  admission answer{++last_, std::nullopt};
  entries_.emplace(answer.id, entry{now, false, {}});
  if (unproven() > limits_.unproven_max) {
    // Numbers rise: the first unproven one is the oldest.
    const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                     [](const auto& e) { return !e.second.proven; });
    answer.leaves = oldest->first;
    gone(oldest->first);  // at once: it ends later, and a burst must not find it here again
  }
  return answer;
}

connection_book::hearing connection_book::heard(number id, std::string_view peer, time_ns now) {
  const auto at = entries_.find(id);
  if (at == entries_.end()) return {.welcome = false, .leaves = std::nullopt};
  if (at->second.proven) {
    at->second.at = now;
    return {};
  }
  hearing answer;
  if (!peer.empty()) {
    const auto same = std::count_if(entries_.begin(), entries_.end(), [&](const auto& e) {
      return e.second.proven && e.second.peer == peer;
    });
    if (static_cast<std::size_t>(same) >= limits_.peer_max) return {false, std::nullopt};
  }
  if (proven_ >= limits_.proven_max) {
    answer.leaves = most_silent(now);
    if (!answer.leaves) return {false, std::nullopt};
    gone(*answer.leaves);
  }
  at->second = entry{now, true, std::string(peer)};
  ++proven_;
  return answer;
}

std::optional<connection_book::number> connection_book::most_silent(time_ns now) const {
  std::optional<number> found;
  time_ns since = now;
  for (const auto& [id, e] : entries_) {
    if (!e.proven || now - e.at < limits_.yielding_after || e.at >= since) continue;
    found = id;
    since = e.at;
  }
  return found;
}

void connection_book::gone(number id) {
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  if (at->second.proven) {
    MOETIER_ASSERT(proven_ > 0);
    --proven_;
  }
  entries_.erase(at);
}

std::vector<connection_book::overdue> connection_book::late(time_ns now) const {
  std::vector<overdue> all;
  for (const auto& [id, e] : entries_) {
    if (now - e.at > (e.proven ? limits_.silence : limits_.first_word)) {
      all.push_back({id, e.proven});
    }
  }
  return all;
}

}  // namespace moetier::coordinator
