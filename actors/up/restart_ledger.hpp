#pragma once
// How often a child may be started again: restart.budget within its window. Pure; time comes in.
// Thread: owner.

#include <deque>

#include "actors/config/quantity.hpp"

namespace moetier::up {

class restart_ledger final {
 public:
  explicit restart_ledger(config::restart_budget budget) : budget_(budget) {}

  // Takes one restart from the budget; false when it is spent.
  bool take(time_ns now) {
    while (!taken_.empty() && now - taken_.front() >= budget_.window) taken_.pop_front();
    if (taken_.size() >= budget_.restarts) return false;
    taken_.push_back(now);
    return true;
  }

 private:
  config::restart_budget budget_;
  std::deque<time_ns> taken_;
};

}  // namespace moetier::up
