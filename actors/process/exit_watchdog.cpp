#include "actors/process/exit_watchdog.hpp"

#include <chrono>
#include <cstdlib>

namespace moetier {

exit_watchdog::exit_watchdog(event_log& log, std::string what, duration_ns limit, int code) {
  thread_ = std::thread([this, &log, what = std::move(what), limit, code] {
    std::unique_lock lock(mutex_);
    if (left_.wait_for(lock, std::chrono::nanoseconds(limit), [this] { return in_time_; })) return;
    log.warn("exit_watchdog", {{"hangs", what}, {"limit_ms", limit / k_millisecond}});
    std::_Exit(code);
  });
}

exit_watchdog::~exit_watchdog() {
  {
    const std::lock_guard lock(mutex_);
    in_time_ = true;
  }
  left_.notify_one();
  thread_.join();
}

}  // namespace moetier
