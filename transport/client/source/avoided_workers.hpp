#pragma once
// Workers that get no rows where another replica is live, as spans of one snapshot: those that the
// coordinator suspects, and those that made a call of this session late not long ago. Pure: time
// comes in as a value. Thread: owner.

#include "transport/client/source/worker_table.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/snapshot/suspicion.hpp"

namespace moetier::client {

// How long a worker that made a call late is avoided, unless a newer snapshot says more.
inline constexpr duration_ns k_late_kept = k_second;

class avoided_workers final {
 public:
  worker_mask at(time_ns now) const noexcept { return suspects_ | (now < late_until_ ? late_ : 0); }

  bool any_late() const noexcept { return late_ != 0; }  // else at() is the same at any time

  worker_mask suspects() const noexcept { return suspects_; }  // the coordinator's

  // The newest word of the coordinator; null = nobody is suspect. Whether it was new.
  bool hear(transport::suspicion_ptr told, const transport::routing_snapshot& snapshot);
  // Under another snapshot: its spans are to be heard of anew.
  void renumber() noexcept {
    told_ = nullptr;
    suspects_ = 0;
  }
  void forget_late() noexcept { late_ = 0; }
  void note_late(std::size_t span, time_ns now) noexcept;

 private:
  transport::suspicion_ptr told_;
  worker_mask suspects_ = 0;  // of told_
  worker_mask late_ = 0;
  time_ns late_until_ = 0;
};

}  // namespace moetier::client
