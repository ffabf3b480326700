#pragma once
// The frames on their way to one member: a bounded ring that many threads push into and one pops
// from, without a lock. A cell's turn number publishes the frame in it: a sender writes the frame,
// then releases the number; the receiver acquires it. The payload itself stays in the sender's
// bank, which the frame keeps alive; the credit protocol keeps it unchanged until the receiver has
// copied. Thread: push(): any; pop(), has_frame(): the receiving member.

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "schemas/wire/wire_header.hpp"
#include "transport/exchange/bank_memory.hpp"

namespace moetier::transport {

struct in_process_frame {
  wire_image head{};
  std::span<const std::byte> payload;
  std::shared_ptr<bank_memory> memory;  // owns `payload`, unless it is a copy
  std::vector<std::byte> copy;          // faults only: what the frame held when it was sent
};

class mailbox final {
 public:
  // Requires: capacity is a power of two.
  explicit mailbox(std::size_t capacity);

  bool push(in_process_frame&& frame);  // false: full, the frame is lost
  bool pop(in_process_frame& frame);
  bool has_frame() const noexcept;

 private:
  struct cell {
    std::atomic<std::size_t> turn{0};
    in_process_frame frame;
  };

  std::vector<cell> cells_;
  std::atomic<std::size_t> tail_{0};  // senders
  std::size_t head_ = 0;              // receiver
};

}  // namespace moetier::transport
