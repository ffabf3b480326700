#pragma once
// SIGTERM and SIGINT as something to wait for, and SIGHUP as a wish to look at files again. Made
// first in main, before any other thread, so that every thread inherits the blocked mask and only
// this one's thread takes the signals. The first one ends wait(); the second ends the process at
// once, unless it is the parent passing on what a manager sent to both. A role that ends by itself
// calls request(). Thread: wait: owner; request, stopping: any.

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include <sys/types.h>

#include "actors/log/event_log.hpp"
#include "schemas/base/time.hpp"

namespace moetier {

class stop_signal final {
 public:
  explicit stop_signal(event_log& log);
  ~stop_signal();
  stop_signal(const stop_signal&) = delete;
  stop_signal& operator=(const stop_signal&) = delete;

  // Blocks until a signal, request() or the end of the limit; true = stopping.
  bool wait(duration_ns limit) noexcept;
  void wait() noexcept;
  void request() noexcept;
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  // Called at every SIGHUP, on this object's thread; an empty function forgets the one before and
  // returns when it is not running.
  void on_hangup(std::function<void()> again);
  // Readable once stopping: for poll() beside other descriptors.
  int descriptor() const noexcept { return stopped_fd_; }

 private:
  void take_signals() noexcept;
  static bool is_passed_on(pid_t first, pid_t now) noexcept;

  event_log& log_;
  std::atomic<bool> stopping_{false};
  std::mutex hangup_mutex_;  // held while it runs
  std::function<void()> hangup_;
  int signal_fd_;
  int stopped_fd_;  // eventfd, never read: stays readable
  int end_fd_;      // eventfd: ends the thread
  std::thread thread_;
};

}  // namespace moetier
