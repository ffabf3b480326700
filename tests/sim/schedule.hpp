#pragma once
// Virtual time: what happens when, in one queue, ties in the order of asking. Thread: owner.

#include <functional>
#include <queue>
#include <vector>

#include "schemas/base/time.hpp"

namespace moetier::sim {

class schedule final {
 public:
  time_ns now() const noexcept { return now_; }
  std::uint64_t done() const noexcept { return done_; }

  void at(time_ns when, std::function<void()> what) {
    queue_.push({when < now_ ? now_ : when, asked_++, std::move(what)});
  }
  void after(duration_ns delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  void run_until(time_ns end) {
    while (!queue_.empty() && queue_.top().when <= end) {
      // The queue gives its top as const; the entry is removed right away, so it may be moved from.
      entry next = std::move(const_cast<entry&>(queue_.top()));
      queue_.pop();
      now_ = next.when;
      ++done_;
      next.what();
    }
    now_ = end;
  }

 private:
  struct entry {
    time_ns when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const entry& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  std::priority_queue<entry> queue_;
  time_ns now_ = k_second;
  std::uint64_t asked_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace moetier::sim
