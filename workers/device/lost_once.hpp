#pragma once
// That a device has failed, for all queues of it: the first word counts and is told to the sink.
// Thread: any.

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "schemas/base/error.hpp"
#include "workers/device/worker_device.hpp"

namespace moetier::workers {

class lost_once final {
 public:
  explicit lost_once(device_lost_sink sink) : sink_(std::move(sink)) {}

  bool is_lost() const noexcept { return lost_.load(std::memory_order_acquire); }

  void tell(const std::string& why) {
    error told = make_error(reason::device_lost, why);
    {
      const std::lock_guard lock(mutex_);
      if (lost_.load(std::memory_order_relaxed)) return;
      why_ = told;
      lost_.store(true, std::memory_order_release);
    }
    if (sink_) sink_(told);
  }

  // Requires: is_lost().
  error why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  device_lost_sink sink_;
  mutable std::mutex mutex_;
  std::atomic<bool> lost_{false};
  error why_;
};

}  // namespace moetier::workers
