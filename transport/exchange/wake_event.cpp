#include "transport/exchange/wake_event.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "schemas/base/assert.hpp"

namespace moetier::transport {

wake_event::wake_event() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { MOETIER_ASSERT(fd_ >= 0); }

wake_event::~wake_event() { close(fd_); }

// Either this thread sees `sleeping_`, or the sleeper sees `set_`: both sides write, then read, in
// one total order.
void wake_event::signal() noexcept {
  set_.store(true, std::memory_order_seq_cst);
  if (!sleeping_.load(std::memory_order_seq_cst)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(fd_, &one, sizeof one);  // full means: signalled
}

void wake_event::sleep(int other_fd, std::chrono::nanoseconds limit) noexcept {
  sleeping_.store(true, std::memory_order_seq_cst);
  if (!set_.load(std::memory_order_seq_cst)) {
    std::array<pollfd, 2> fds{pollfd{.fd = fd_, .events = POLLIN, .revents = 0},
                              pollfd{.fd = other_fd, .events = POLLIN, .revents = 0}};
    const auto ns = std::max<std::int64_t>(limit.count(), 0);
    const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    ppoll(fds.data(), fds.size(), &time, nullptr);
  }
  sleeping_.store(false, std::memory_order_seq_cst);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto drained = read(fd_, &count, sizeof count);
}

}  // namespace moetier::transport
