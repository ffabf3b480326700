#pragma once
// One way from one half to another: the sender's memory of the pair, mapped by the receiver too,
// with a ring of frames at its beginning. Nobody else writes it, so a sender that is killed or
// frozen in the middle of a send holds up nobody: a frame is there once it is counted. Payloads lie
// in the sender's banks until the receiver has copied them and counted that. What the receiver
// reads is checked against the size of what it mapped and copied before it is judged.
// Thread: each end its half's owner.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "schemas/wire/wire_header.hpp"
#include "transport/exchange/bank_memory.hpp"
#include "transport/exchange/limits.hpp"
#include "transport/exchange/link.hpp"
#include "transport/shared_memory/front.hpp"
#include "transport/shared_memory/peer_process.hpp"

namespace moetier::transport {

// At the beginning of a pair's memory.
struct lane_words {
  struct frame {
    std::atomic<std::uint32_t> head;
    std::atomic<std::uint64_t> payload_bytes;
    std::atomic<std::uint64_t> taken_at;  // by the receiver, on the clock that the host has for all
  };
  // Each header of the memory is under way once at most.
  static constexpr std::uint32_t k_frames = 16;
  static_assert(k_frames >= 2 * k_banks_max + 1 && (k_frames & (k_frames - 1)) == 0);

  std::array<std::uint64_t, 2> token;  // the block's
  std::atomic<std::uint32_t> banks;
  std::atomic<std::uint64_t> out_bytes;
  std::atomic<std::uint64_t> in_bytes;
  alignas(128) std::atomic<std::uint32_t> sent;   // frames, by the sender
  std::atomic<std::uint32_t> ended;               // the sender sends no more
  alignas(128) std::atomic<std::uint32_t> taken;  // frames, by the receiver
  alignas(128) std::array<frame, k_frames> frames;
};
inline constexpr std::size_t k_lane_bytes = (sizeof(lane_words) + 127) / 128 * 128;

// The sender's end, and who is at the other.
class outgoing_lane final {
 public:
  // Offers the lane at the peer's front. Requires: memory->block() != nullptr.
  static expected<std::unique_ptr<outgoing_lane>> make(const block_name& peer, const front& self,
                                                       std::shared_ptr<bank_memory> memory);
  ~outgoing_lane();

  // `place` is told by sent() once the receiver has copied it.
  void send(std::uint32_t head, std::size_t payload_bytes, link_place place);
  bool sent(link_place& place, time_ns& at) noexcept;
  // Whether the peer will never take anything again.
  bool is_lost() const noexcept { return peer_->has_gone() || process_->has_ended(); }
  bool has_gone() const noexcept { return peer_->has_gone(); }

 private:
  outgoing_lane(std::unique_ptr<peer_process> process, std::unique_ptr<front> peer,
                std::shared_ptr<bank_memory> memory)
      : process_(std::move(process)), peer_(std::move(peer)), memory_(std::move(memory)) {}
  lane_words& words() const noexcept {
    return *reinterpret_cast<lane_words*>(memory_->block()->bytes().data());
  }

  std::unique_ptr<peer_process> process_;
  std::unique_ptr<front> peer_;
  std::shared_ptr<bank_memory> memory_;
  std::array<link_place, lane_words::k_frames> places_{};
  std::uint32_t sent_ = 0;
  std::uint32_t told_ = 0;  // by sent(), of those
};

// The receiver's end.
class incoming_lane final {
 public:
  static expected<std::unique_ptr<incoming_lane>> open(const lane_offer& offer);

  // Hands over all frames that are there; whether there was one.
  bool receive(FrameSink& sink);
  // Nothing will come any more.
  bool has_ended() const noexcept;
  std::uint64_t frames_dropped() const noexcept { return frames_dropped_; }

 private:
  incoming_lane(std::unique_ptr<peer_process> process, std::unique_ptr<shared_block> block,
                std::unique_ptr<front> sender, const bank_layout& layout)
      : process_(std::move(process)),
        block_(std::move(block)),
        sender_(std::move(sender)),
        layout_(layout) {}
  lane_words& words() const noexcept {
    return *reinterpret_cast<lane_words*>(block_->bytes().data());
  }
  std::uint32_t frames() const noexcept {
    return words().sent.load(std::memory_order_acquire) - taken_;
  }
  void receive_next(FrameSink& sink);

  std::unique_ptr<peer_process> process_;
  std::unique_ptr<shared_block> block_;
  std::unique_ptr<front> sender_;
  bank_layout layout_;
  std::uint32_t taken_ = 0;
  bool broken_ = false;  // its sender counts more frames than there can be
  std::uint64_t frames_dropped_ = 0;
};

}  // namespace moetier::transport
