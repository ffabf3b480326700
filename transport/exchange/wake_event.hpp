#pragma once
// Ends another thread's sleep: a flag and an event descriptor. A signal is never lost: one that
// comes before the sleep ends it at once. While nobody sleeps a signal costs no system call.
// Owned by the half that sleeps. Thread: signal(): any; all else: owner.

#include <atomic>
#include <chrono>

namespace moetier::transport {

class wake_event final {
 public:
  wake_event();
  ~wake_event();
  wake_event(const wake_event&) = delete;
  wake_event& operator=(const wake_event&) = delete;

  void signal() noexcept;
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

  // Sleeps until a signal, or `other_fd` (-1 = none) is readable, or the time is over.
  void sleep(int other_fd, std::chrono::nanoseconds limit) noexcept;
  // Forgets the signal that ended the sleep.
  void clear() noexcept { set_.store(false, std::memory_order_release); }

 private:
  int fd_ = -1;
  std::atomic<bool> set_{false};
  std::atomic<bool> sleeping_{false};
};

}  // namespace moetier::transport
