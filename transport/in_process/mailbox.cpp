#include "transport/in_process/mailbox.hpp"

#include <bit>

#include "schemas/base/assert.hpp"

namespace moetier::transport {

// Turn t of a cell at index i: t == i (mod capacity) says empty for push t, t == i + 1 holds the
// frame of push t - 1.
mailbox::mailbox(std::size_t capacity) : cells_(capacity) {
  MOETIER_ASSERT(std::has_single_bit(capacity));
  for (std::size_t i = 0; i < capacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
}

bool mailbox::push(in_process_frame&& frame) {
  std::size_t tail = tail_.load(std::memory_order_relaxed);
  for (;;) {
    cell& c = cells_[tail & (cells_.size() - 1)];
    const std::size_t turn = c.turn.load(std::memory_order_acquire);
    if (turn == tail) {
      if (!tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) continue;
      c.frame = std::move(frame);
      c.turn.store(tail + 1, std::memory_order_release);
      return true;
    }
    if (turn < tail) return false;
    tail = tail_.load(std::memory_order_relaxed);
  }
}

bool mailbox::pop(in_process_frame& frame) {
  cell& c = cells_[head_ & (cells_.size() - 1)];
  if (c.turn.load(std::memory_order_acquire) != head_ + 1) return false;
  frame = std::move(c.frame);
  c.frame = in_process_frame{};
  c.turn.store(head_ + cells_.size(), std::memory_order_release);
  ++head_;
  return true;
}

bool mailbox::has_frame() const noexcept {
  const cell& c = cells_[head_ & (cells_.size() - 1)];
  return c.turn.load(std::memory_order_acquire) == head_ + 1;
}

}  // namespace moetier::transport
