#include "transport/client/link/snapshot_board.hpp"

#include <chrono>
#include <utility>

namespace moetier::client {

bool snapshot_board::offer(transport::snapshot_ptr snapshot) {
  if (snapshot == nullptr) return false;
  {
    const std::lock_guard lock(mutex_);
    if (newest_ != nullptr && !transport::is_newer(*snapshot, *newest_)) return false;
    newest_ = std::move(snapshot);
  }
  changed_.notify_all();
  return true;
}

transport::snapshot_ptr snapshot_board::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

transport::snapshot_ptr snapshot_board::wait_newer(const transport::routing_snapshot& seen,
                                                   duration_ns limit,
                                                   const std::function<bool()>& in_vain) const {
  std::unique_lock lock(mutex_);
  const auto is_up = [&] { return newest_ != nullptr && transport::is_newer(*newest_, seen); };
  changed_.wait_for(lock, std::chrono::nanoseconds(limit),
                    [&] { return closed_ || is_up() || (in_vain && in_vain()); });
  return is_up() ? newest_ : nullptr;
}

// Under the lock, so that nobody who is about to wait misses it.
void snapshot_board::look_again() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void snapshot_board::suspect(transport::suspicion_ptr suspicion) {
  {
    const std::lock_guard lock(mutex_);
    suspicion_ = std::move(suspicion);
  }
  changed_.notify_all();
}

transport::suspicion_ptr snapshot_board::suspicion() const {
  const std::lock_guard lock(mutex_);
  return suspicion_;
}

void snapshot_board::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace moetier::client
