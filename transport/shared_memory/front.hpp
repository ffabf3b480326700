#pragma once
// What a half shows to all of its peers, in a block of its own: a bell that they ring, a word that
// it has gone, and doors. A door is where a peer hands over the name of the lane it will send by;
// the owner takes it up and frees the door. Who is killed in the middle of a hand-over, or before
// it was taken up, leaves a door with its process's number on it, which the owner frees and another
// peer takes over when it finds none free; nobody waits for it.
// Thread: the owner takes; peers of any process offer and ring.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "schemas/base/error.hpp"
#include "transport/exchange/shared_block.hpp"

namespace moetier::transport {

// What a peer hands over: the block of its lane, and that of its own front.
struct lane_offer {
  block_name lane;
  block_name front;
};

class front final {
 public:
  static expected<std::unique_ptr<front>> make();
  static expected<std::unique_ptr<front>> open(const block_name& name);

  const block_name& name() const noexcept { return block_->name(); }

  // Peers.
  expected<void> offer(const lane_offer& lane) noexcept;
  void ring() noexcept;   // something is there; ends the owner's sleep
  void nudge() noexcept;  // something is there, but it may sleep on
  bool has_gone() const noexcept { return shown().gone.load(std::memory_order_acquire) != 0; }

  // The owner.
  std::uint32_t rung() const noexcept { return shown().bell.load(std::memory_order_acquire); }
  bool take(lane_offer& out) noexcept;  // an offer that is complete
  void look_at_doors() noexcept;        // the next take() looks at each; frees those of the dead
  // Until the bell rings after `heard`, or the time is over.
  void sleep(std::uint32_t heard, std::chrono::nanoseconds limit) noexcept;
  void go() noexcept;

 private:
  static constexpr std::uint32_t k_doors = 128;
  static constexpr std::uint32_t k_version = 1;

  // Of a door: free, or whose it is and whether the offer is complete.
  static constexpr std::uint64_t k_free = 0;
  static constexpr std::uint64_t k_complete = 1;
  static constexpr std::uint64_t claimed_by(std::uint32_t process) noexcept {
    return std::uint64_t{process} << 1;
  }

  struct alignas(128) door {
    std::atomic<std::uint64_t> state;
    lane_offer offer;
  };
  struct shown_words {
    std::array<std::uint64_t, 2> token;
    std::uint32_t version;
    alignas(128) std::atomic<std::uint32_t> bell;
    std::atomic<std::uint32_t> sleeping;
    alignas(128) std::atomic<std::uint32_t> gone;
    std::atomic<std::uint32_t> offers;  // counts up
    std::array<door, k_doors> doors;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  static bool claim(door& d, std::uint32_t process, std::uint64_t state) noexcept;

  explicit front(std::unique_ptr<shared_block> block) noexcept : block_(std::move(block)) {}
  shown_words& shown() const noexcept {
    return *reinterpret_cast<shown_words*>(block_->bytes().data());
  }

  std::unique_ptr<shared_block> block_;
  std::uint32_t offers_taken_ = 0;  // the owner's
};

}  // namespace moetier::transport
