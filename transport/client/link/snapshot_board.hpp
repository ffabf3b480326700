#pragma once
// Where the newest routing snapshot hangs, and beside it whom the coordinator suspects: one writer
// puts newer ones up, any number of readers look at it or wait for a newer snapshot. Owned by a
// link (a client's sessions read it) or by the gateway (its thin sessions do). It keeps exactly one
// of each. Thread: any.

#include <condition_variable>
#include <functional>
#include <mutex>

#include "schemas/base/time.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/snapshot/suspicion.hpp"

namespace moetier::client {

class snapshot_board final {
 public:
  // Keeps the newer of the two; true if `snapshot` is it.
  bool offer(transport::snapshot_ptr snapshot);
  transport::snapshot_ptr newest() const;  // null before the first
  // Blocks until one newer than `seen` hangs there; null if the limit was over, it was closed, or
  // `in_vain` (optional) says that there is nothing to wait for.
  transport::snapshot_ptr wait_newer(const transport::routing_snapshot& seen, duration_ns limit,
                                     const std::function<bool()>& in_vain = {}) const;
  void look_again();                                 // what `in_vain` says may have changed
  void suspect(transport::suspicion_ptr suspicion);  // the last one told counts
  transport::suspicion_ptr suspicion() const;        // null before the first
  // Ends every wait, also those to come.
  void close();

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  transport::snapshot_ptr newest_;
  transport::suspicion_ptr suspicion_;
  bool closed_ = false;
};

}  // namespace moetier::client
