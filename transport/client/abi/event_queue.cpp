#include "transport/client/abi/event_queue.hpp"

#include <algorithm>
#include <chrono>

#include <sys/eventfd.h>
#include <unistd.h>

namespace moetier::abi {
namespace {

constexpr duration_ns k_wait_max = 24 * 3600 * k_second;

}  // namespace

event_queue::event_queue() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

event_queue::~event_queue() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void event_queue::push(const moetier_event& event) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    const bool was_empty = count_ == 0;
    if (overflowed_ && count_ < k_events_max) {
      moetier_event lost = event;
      lost.kind = MOETIER_EVENT_OVERFLOW;
      ring_[(first_ + count_++) % k_events_max] = lost;
      overflowed_ = false;
    }
    if (count_ == k_events_max) {
      overflowed_ = true;
      return;
    }
    ring_[(first_ + count_++) % k_events_max] = event;
    if (was_empty && descriptor_ >= 0) {
      const std::uint64_t one = 1;
      static_cast<void>(!::write(descriptor_, &one, sizeof one));
    }
  }
  came_.notify_one();
}

event_wait event_queue::pop(moetier_event& event, duration_ns limit) {
  std::unique_lock lock(mutex_);
  const auto wait = std::chrono::nanoseconds(std::min(limit, k_wait_max));
  ++waiting_;
  const bool ended = came_.wait_for(lock, wait, [&] { return count_ > 0 || closed_; });
  --waiting_;
  if (closed_) {
    // Under the lock: close() and the queue's end come after this thread has let go of it.
    if (waiting_ == 0) left_.notify_all();
    return event_wait::closed;
  }
  if (!ended) return event_wait::none;
  event = ring_[first_];
  first_ = (first_ + 1) % k_events_max;
  if (--count_ == 0 && descriptor_ >= 0) {
    std::uint64_t all = 0;
    static_cast<void>(!::read(descriptor_, &all, sizeof all));
  }
  return event_wait::came;
}

void event_queue::close() noexcept {
  std::unique_lock lock(mutex_);
  closed_ = true;
  came_.notify_all();
  left_.wait(lock, [&] { return waiting_ == 0; });
}

}  // namespace moetier::abi
