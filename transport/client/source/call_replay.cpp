#include "transport/client/source/call_replay.hpp"

namespace moetier::client {

bool failed_by_loss(const call_failure& failure) noexcept {
  return failure.kind == failure_kind::lost || failure.kind == failure_kind::late ||
         (failure.kind == failure_kind::refused && failure.answered == status::unavailable);
}

bool may_end_otherwise(const call_failure& failure, const transport::routing_snapshot& failed,
                       const transport::routing_snapshot& next) noexcept {
  if (next.generation != failed.generation || !transport::is_newer(next, failed)) return false;
  if (failure.kind == failure_kind::refused) return true;
  const auto* before = find_worker(failed, failure.worker);
  const auto* after = find_worker(next, failure.worker);
  if (before == nullptr || after == nullptr || !after->live) return true;
  return before->incarnation != after->incarnation;
}

}  // namespace moetier::client
