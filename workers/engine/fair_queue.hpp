#pragma once
// In which order waiting calls are computed. Classes are served strictly, decode before prefill
// before batch, but for a share of time that is kept for the lower ones while they wait. Within a
// class tenants take turns by deficit round robin: each round gives a tenant time by its weight,
// and a call is due once its tenant has saved up the call's cost. So tenants share by time, not by
// number of calls, and a large call of one delays the others by that one call at most. Calls of one
// tenant and class stay in their order.
//
// A call is a place, 0..places-1, which its owner keeps beside it; cost is its predicted time.
// Pure and deterministic: no clock, no thread. Thread: owner. Allocates when made, never after.

#include <array>
#include <cstdint>
#include <vector>

#include "schemas/base/deadline_class.hpp"
#include "schemas/base/time.hpp"

namespace moetier::workers {

// What a tenant of weight 1 gets a round. Small against a call, so that shares are kept closely.
inline constexpr duration_ns k_fair_round = 20 * k_microsecond;
// Of the time spent on higher classes while a lower one waits, this part is the lower one's.
inline constexpr std::uint64_t k_lower_share_percent = 5;
inline constexpr std::uint32_t k_fair_weight_max = 1000;

class fair_queue final {
 public:
  using place = std::uint32_t;
  using tenant = std::uint32_t;  // 0..tenants-1

  fair_queue(std::uint32_t places, std::uint32_t tenants);

  std::uint32_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return free_ == k_none; }

  // 1 unless told otherwise. Requires: 1 <= weight <= k_fair_weight_max.
  void set_weight(tenant who, std::uint32_t weight);

  // Takes a place for a call. Requires: not full().
  place push(tenant who, deadline_class urgency, duration_ns cost);
  // Gives the next call's place free; what lies there is the caller's until the next push.
  // Requires: not empty().
  place pop();
  void remove(place which);  // no effect unless a call waits there
  bool waits(place which) const noexcept { return calls_[which].waiting; }

  // The time that goes by before a call of this tenant would begin, as far as it can be told now:
  // all that is more urgent, its tenant's own, and what other tenants are due meanwhile.
  duration_ns time_ahead(tenant who, deadline_class urgency, duration_ns cost) const noexcept;

 private:
  static constexpr std::uint32_t k_none = 0xffffffffu;

  struct call {
    bool waiting = false;
    std::uint32_t next = k_none;  // of its line, or of the free places
    std::uint32_t line = 0;
    duration_ns cost = 0;
  };
  // The calls of one tenant in one class.
  struct line {
    std::uint32_t first = k_none;
    std::uint32_t last = k_none;
    duration_ns deficit = 0;  // time saved up and not spent
    duration_ns waiting = 0;  // cost of all its calls
  };
  struct level {
    std::vector<tenant> active;  // who has calls, in the order of their turns
    std::size_t count = 0;
    std::size_t turn = 0;
    duration_ns waiting = 0;
    duration_ns kept_for_lower = 0;  // what the classes below have saved up here
  };

  line& line_of(tenant who, std::size_t urgency) noexcept {
    return lines_[urgency * weights_.size() + who];
  }
  const line& line_of(tenant who, std::size_t urgency) const noexcept {
    return lines_[urgency * weights_.size() + who];
  }
  std::uint64_t rounds_until_due(tenant who, std::size_t urgency) const noexcept;
  std::size_t choose_turn(std::size_t urgency) const noexcept;
  std::size_t choose_class() noexcept;
  place take(std::size_t urgency);
  void leave(std::size_t urgency, std::size_t turn) noexcept;
  void give_free(place which) noexcept;

  std::vector<call> calls_;
  std::vector<line> lines_;  // by class, then tenant
  std::vector<std::uint32_t> weights_;
  std::array<level, k_deadline_classes> levels_;
  place free_ = k_none;
  std::uint32_t size_ = 0;
};

}  // namespace moetier::workers
