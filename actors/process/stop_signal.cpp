#include "actors/process/stop_signal.hpp"

#include <csignal>
#include <cstdlib>
#include <optional>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "schemas/base/assert.hpp"

namespace moetier {
namespace {

sigset_t stop_set() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

void raise_event(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

}  // namespace

stop_signal::stop_signal(event_log& log) : log_(log) {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A peer that closes its socket is an error code here, never a signal.
  std::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  stopped_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  end_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  MOETIER_ASSERT(signal_fd_ >= 0 && stopped_fd_ >= 0 && end_fd_ >= 0);
  thread_ = std::thread([this] { take_signals(); });
}

stop_signal::~stop_signal() {
  raise_event(end_fd_);
  thread_.join();
  ::close(signal_fd_);
  ::close(stopped_fd_);
  ::close(end_fd_);
}

// A manager may signal a whole group, and the parent in it then passes its own on: that is the same
// wish once more.
bool stop_signal::is_passed_on(pid_t first, pid_t now) noexcept {
  const pid_t parent = ::getppid();
  return now == parent && first != parent;
}

void stop_signal::take_signals() noexcept {
  std::optional<pid_t> first;  // who asked
  for (;;) {
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0) continue;
    if (fds[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signal_fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    if (info.ssi_signo == SIGHUP) {
      const std::lock_guard lock(hangup_mutex_);
      if (hangup_) hangup_();
      continue;
    }
    const auto sender = static_cast<pid_t>(info.ssi_pid);
    if (first && is_passed_on(*first, sender)) {
      first = sender;  // its next one is a second wish
      continue;
    }
    if (first) {
      log_.warn("stopped_at_once", {{"signal", std::uint64_t{info.ssi_signo}}});
      std::_Exit(1);
    }
    first = sender;
    log_.info("stopping", {{"signal", std::uint64_t{info.ssi_signo}}});
    request();
  }
}

void stop_signal::on_hangup(std::function<void()> again) {
  const std::lock_guard lock(hangup_mutex_);
  hangup_ = std::move(again);
}

void stop_signal::request() noexcept {
  stopping_.store(true, std::memory_order_release);
  raise_event(stopped_fd_);
}

bool stop_signal::wait(duration_ns limit) noexcept {
  const time_ns until = monotonic_now() + limit;
  while (!stopping()) {
    const time_ns now = monotonic_now();
    if (now >= until) return false;
    pollfd fd{stopped_fd_, POLLIN, 0};
    const duration_ns left_ms = (until - now + k_millisecond - 1) / k_millisecond;
    ::poll(&fd, 1, static_cast<int>(left_ms > 3'600'000 ? 3'600'000 : left_ms));
  }
  return true;
}

void stop_signal::wait() noexcept {
  while (!wait(3600 * k_second)) {
  }
}

}  // namespace moetier
