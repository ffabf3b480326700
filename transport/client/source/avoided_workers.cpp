#include "transport/client/source/avoided_workers.hpp"

#include <utility>

namespace moetier::client {

bool avoided_workers::hear(transport::suspicion_ptr told,
                           const transport::routing_snapshot& snapshot) {
  if (told == told_) return false;
  told_ = std::move(told);
  suspects_ = 0;
  if (told_ == nullptr) return true;
  for (const transport::suspect& suspect : told_->workers) {
    for (std::size_t s = 0; s < snapshot.workers.size(); ++s) {
      const transport::snapshot_worker& entry = snapshot.workers[s];
      if (entry.worker == suspect.worker && entry.incarnation == suspect.incarnation) {
        suspects_ |= worker_mask{1} << s;
      }
    }
  }
  return true;
}

void avoided_workers::note_late(std::size_t span, time_ns now) noexcept {
  late_ = (now < late_until_ ? late_ : 0) | worker_mask{1} << span;
  late_until_ = now + k_late_kept;
}

}  // namespace moetier::client
