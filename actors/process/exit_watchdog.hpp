#pragma once
// Bounds an orderly end: when the guarded scope is not left in time, a line is logged and the
// process ends at once with the code that it was about to end with (0 unless given), because what it
// had to finish is finished and only a library hangs. Thread: owner; the wait is on a thread of its
// own.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "actors/log/event_log.hpp"
#include "schemas/base/time.hpp"

namespace moetier {

class exit_watchdog final {
 public:
  exit_watchdog(event_log& log, std::string what, duration_ns limit, int code = 0);
  ~exit_watchdog();  // in time
  exit_watchdog(const exit_watchdog&) = delete;
  exit_watchdog& operator=(const exit_watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  bool in_time_ = false;
  std::thread thread_;
};

}  // namespace moetier
