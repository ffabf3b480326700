#include "transport/client/source/worker_table.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"

namespace moetier::client {

const transport::snapshot_worker* find_worker(const transport::routing_snapshot& snapshot,
                                              worker_id worker) noexcept {
  for (const auto& entry : snapshot.workers) {
    if (entry.worker == worker) return &entry;
  }
  return nullptr;
}

// A worker that is only masked stays attached: it may come back as the same process, whose half
// still knows this source and holds what was sent to it. It gets no rows meanwhile, since its
// shares are zero. A restarted coordinator that has not met it shows no process at all.
bool worker_table::keeps(std::size_t index,
                         const transport::routing_snapshot& next) const noexcept {
  const member& m = members_[index];
  const auto* entry = find_worker(next, m.worker);
  if (m.broken || entry == nullptr) return false;
  const bool unmet = !entry->live && entry->incarnation == incarnation_id();
  return unmet || entry->incarnation == m.incarnation;
}

bool worker_table::serves(std::size_t index,
                          const transport::routing_snapshot& next) const noexcept {
  return keeps(index, next) && find_worker(next, members_[index].worker)->live;
}

void worker_table::adopt(const transport::routing_snapshot& next, transport::SourceHalf& half) {
  for (std::size_t i = members_.size(); i-- > 0;) {
    if (keeps(i, next)) continue;
    half.detach_worker(members_[i].worker);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  unreachable_ = 0;
  for (std::size_t s = 0; s < next.workers.size(); ++s) {
    const auto& entry = next.workers[s];
    const bool attached = std::any_of(members_.begin(), members_.end(),
                                      [&](const member& m) { return m.worker == entry.worker; });
    if (!entry.live || attached) continue;
    const transport::worker_identity identity{entry.worker, entry.incarnation};
    if (half.attach_worker(identity, entry.address)) {
      members_.push_back({entry.worker, entry.incarnation});
    } else {
      unreachable_ |= worker_mask{1} << s;
    }
  }

  const auto& placement = next.placement;
  if (generation_ == next.generation && spans() == placement.spans().size()) return;
  MOETIER_ASSERT(placement.spans().size() <= k_spans_max);
  generation_ = next.generation;
  worker_of_span_.clear();
  for (const auto& span : placement.spans()) worker_of_span_.push_back(span.worker);
  span_of_dense_.resize(placement.dense_slots());
  slot_of_dense_.resize(placement.dense_slots());
  for (std::uint32_t dense = 0; dense < placement.dense_slots(); ++dense) {
    span_of_dense_[dense] = static_cast<std::uint8_t>(placement.span_of(dense));
    slot_of_dense_[dense] = static_cast<std::int32_t>(placement.global_slot(dense).value);
  }
}

void worker_table::mark_broken(worker_id worker) noexcept {
  for (member& m : members_) {
    if (m.worker == worker) m.broken = true;
  }
  for (std::size_t s = 0; s < spans(); ++s) {
    if (worker_of_span_[s] == worker) unreachable_ |= worker_mask{1} << s;
  }
}

}  // namespace moetier::client
