#pragma once
// How a role ends, told by its core on the actor's thread and read by main: asked for, or failed
// and why. Thread: any.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "actors/process/stop_signal.hpp"
#include "schemas/base/error.hpp"

namespace moetier::roles {

class ending final {
 public:
  explicit ending(stop_signal& stop) : stop_(stop) {}

  // The core has stopped; main stops too. The first word counts.
  void core_stopped(std::optional<error> failure) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      stopped_ = true;
      failure_ = std::move(failure);
    }
    changed_.notify_all();
    stop_.request();
  }

  // Until the core has stopped; false = not within the limit.
  bool wait(duration_ns limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(limit), [&] { return stopped_; });
  }

  expected<void> result() const {
    const std::lock_guard lock(mutex_);
    if (failure_) return tl::unexpected(*failure_);
    return {};
  }

 private:
  stop_signal& stop_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::optional<error> failure_;
};

}  // namespace moetier::roles
