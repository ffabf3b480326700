#include "transport/client/link/link_news.hpp"

#include <utility>

namespace moetier::client {

void link_news::session_opened(session_id session) {
  const std::lock_guard lock(mutex_);
  lost_[session] = false;
}

void link_news::session_gone(session_id session, bool lost) {
  {
    const std::lock_guard lock(mutex_);
    if (lost) {
      lost_[session] = true;
    } else {
      lost_.erase(session);
    }
  }
  snapshots.look_again();
}

bool link_news::session_lost(session_id session) const {
  const std::lock_guard lock(mutex_);
  const auto found = lost_.find(session);
  return found == lost_.end() || found->second;
}

transport::snapshot_ptr link_news::wait_newer(session_id session,
                                              const transport::routing_snapshot& seen,
                                              duration_ns limit) const {
  return snapshots.wait_newer(seen, limit, [&] { return session_lost(session); });
}

void link_news::sink(std::function<void(link_event, session_id)> sink) {
  const std::lock_guard lock(sink_mutex_);
  sink_ = std::move(sink);
}

void link_news::tell(link_event what, session_id session) const {
  const std::lock_guard lock(sink_mutex_);
  if (sink_) sink_(what, session);
}

}  // namespace moetier::client
