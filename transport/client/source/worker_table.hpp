#pragma once
// The workers of the adopted snapshot as a source half sees them: which of them its half of the
// data plane is attached to, and the placement's slots as flat tables for the layer's path. Owned
// by one source session; it changes only when a snapshot is adopted. It never sends anything.
// Thread: owner.

#include <bit>
#include <cstdint>
#include <vector>

#include "schemas/base/limits.hpp"
#include "transport/communication.hpp"
#include "transport/snapshot/routing_snapshot.hpp"

namespace moetier::client {

// A set of workers by span index: bit i is the placement's span i.
using worker_mask = std::uint64_t;
inline constexpr std::uint32_t k_spans_max = 64;
static_assert(k_workers_max <= k_spans_max);

// Calls `visit(span)` for each worker of a mask, in ascending order.
template <class Visit>
void for_each_span(worker_mask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::size_t>(std::countr_zero(mask)));
}

class worker_table final {
 public:
  // Whether the attached worker `index` stays attached under `next`, and whether it also serves.
  bool keeps(std::size_t index, const transport::routing_snapshot& next) const noexcept;
  bool serves(std::size_t index, const transport::routing_snapshot& next) const noexcept;

  std::size_t attached_count() const noexcept { return members_.size(); }
  worker_id attached_worker(std::size_t index) const noexcept { return members_[index].worker; }

  // Detaches who is not kept, attaches who is live and new. A worker that cannot be
  // attached stays out; rows for it fail as lost. Requires: no exchange of a detached worker is in
  // use any more.
  void adopt(const transport::routing_snapshot& next, transport::SourceHalf& half);

  // The carrier lost this worker, as it is attached now; the next adoption attaches it anew if it
  // is still live then.
  void mark_broken(worker_id worker) noexcept;
  // Workers of the adopted snapshot that are live and get no rows from here: broken, or such as
  // could not be attached.
  worker_mask unreachable() const noexcept { return unreachable_; }

  std::size_t spans() const noexcept { return worker_of_span_.size(); }
  worker_id worker_of(std::size_t span) const noexcept { return worker_of_span_[span]; }
  // By dense position.
  std::uint8_t span_of(std::int32_t dense) const noexcept {
    return span_of_dense_[static_cast<std::size_t>(dense)];
  }
  std::int32_t slot_of(std::int32_t dense) const noexcept {
    return slot_of_dense_[static_cast<std::size_t>(dense)];
  }

 private:
  struct member {
    worker_id worker;
    incarnation_id incarnation;
    bool broken = false;
  };

  std::vector<member> members_;  // attached
  worker_mask unreachable_ = 0;
  generation_number generation_;
  std::vector<worker_id> worker_of_span_;
  std::vector<std::uint8_t> span_of_dense_;
  std::vector<std::int32_t> slot_of_dense_;
};

// The entry of `worker` in a snapshot, or null.
const transport::snapshot_worker* find_worker(const transport::routing_snapshot& snapshot,
                                              worker_id worker) noexcept;

}  // namespace moetier::client
