#pragma once
// What a link's loop tells its callers without being asked: the newest snapshot, which sessions are
// lost, events. The loop writes, everyone reads. Thread: any.

#include <functional>
#include <map>
#include <mutex>

#include "transport/client/link/snapshot_board.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::client {

class link_news final {
 public:
  snapshot_board snapshots;

  void session_opened(session_id session);
  void session_gone(session_id session, bool lost);
  bool session_lost(session_id session) const;  // true for one that was never opened
  // As the board's; a session that is lost waits for none.
  transport::snapshot_ptr wait_newer(session_id session, const transport::routing_snapshot& seen,
                                     duration_ns limit) const;

  void sink(std::function<void(link_event, session_id)> sink);
  void tell(link_event what, session_id session) const;

 private:
  mutable std::mutex mutex_;
  std::map<session_id, bool> lost_;  // sessions that were opened and not closed
  mutable std::mutex sink_mutex_;    // held while the sink runs: a replaced sink is never called
  std::function<void(link_event, session_id)> sink_;
};

}  // namespace moetier::client
