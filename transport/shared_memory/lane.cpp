#include "transport/shared_memory/lane.hpp"

#include <cstring>

#include "schemas/base/assert.hpp"

namespace moetier::transport {

expected<std::unique_ptr<outgoing_lane>> outgoing_lane::make(const block_name& peer,
                                                             const front& self,
                                                             std::shared_ptr<bank_memory> memory) {
  MOETIER_ASSERT(memory->block() != nullptr);
  auto process = peer_process::watch(peer.process);  // first: what is opened then is its own
  if (!process) return unexpected_error(process.error());
  auto shown = front::open(peer);
  if (!shown) return unexpected_error(shown.error());
  std::unique_ptr<outgoing_lane> lane(
      new outgoing_lane(std::move(*process), std::move(*shown), std::move(memory)));
  if (lane->is_lost())
    return fail(reason::carrier_unavailable, "shared_memory", "the peer has ended");
  const bank_layout& layout = lane->memory_->layout();
  lane->words().banks = layout.banks;
  lane->words().out_bytes = layout.out_bytes;
  lane->words().in_bytes = layout.in_bytes;
  auto taken = lane->peer_->offer({.lane = lane->memory_->block()->name(), .front = self.name()});
  if (!taken) return unexpected_error(taken.error());
  return lane;
}

outgoing_lane::~outgoing_lane() {
  if (!memory_->block()->is_own()) return;
  words().ended.store(1, std::memory_order_release);
  peer_->ring();
}

void outgoing_lane::send(std::uint32_t head, std::size_t payload_bytes, link_place place) {
  MOETIER_ASSERT(sent_ - told_ < lane_words::k_frames);
  const std::uint32_t at = sent_++ % lane_words::k_frames;
  places_[at] = place;
  words().frames[at].head.store(head, std::memory_order_relaxed);
  words().frames[at].payload_bytes.store(payload_bytes, std::memory_order_relaxed);
  words().sent.store(sent_, std::memory_order_release);
  peer_->ring();
}

bool outgoing_lane::sent(link_place& place, time_ns& at) noexcept {
  if (told_ == sent_ || words().taken.load(std::memory_order_acquire) == told_) return false;
  const std::uint32_t which = told_++ % lane_words::k_frames;
  place = places_[which];
  at = words().frames[which].taken_at.load(std::memory_order_relaxed);
  return true;
}

expected<std::unique_ptr<incoming_lane>> incoming_lane::open(const lane_offer& offer) {
  auto process = peer_process::watch(offer.lane.process);  // first, as above
  if (!process) return unexpected_error(process.error());
  auto block = shared_block::open(offer.lane);
  if (!block) return unexpected_error(block.error());
  auto sender = front::open(offer.front);
  if (!sender) return unexpected_error(sender.error());
  const auto bad = [] {
    return fail(reason::frame_malformed, "a lane's memory is not what it says");
  };
  if ((*block)->bytes().size() < k_lane_bytes) return bad();
  const auto& words = *reinterpret_cast<const lane_words*>((*block)->bytes().data());
  const bank_layout layout{.banks = words.banks,
                           .out_bytes = words.out_bytes,
                           .in_bytes = words.in_bytes,
                           .carrier_bytes = k_lane_bytes};
  constexpr std::size_t k_region_max = std::size_t{k_return_rows_max} * k_row_bytes_max;
  if (layout.banks < k_banks_min || layout.banks > k_banks_max || layout.out_bytes > k_region_max ||
      layout.in_bytes > k_region_max || layout.bytes() != (*block)->bytes().size()) {
    return bad();
  }
  return std::unique_ptr<incoming_lane>(
      new incoming_lane(std::move(*process), std::move(*block), std::move(*sender), layout));
}

bool incoming_lane::receive(FrameSink& sink) {
  if (broken_) return false;
  const std::uint32_t count = frames();
  if (count == 0) return false;
  if (count > lane_words::k_frames) {
    broken_ = true;
    ++frames_dropped_;
    return false;
  }
  for (std::uint32_t i = 0; i < count; ++i) receive_next(sink);
  return true;
}

void incoming_lane::receive_next(FrameSink& sink) {
  lane_words& w = words();
  lane_words::frame& frame = w.frames[taken_ % lane_words::k_frames];
  // Each is read once: what is judged must not change any more.
  const std::uint32_t which = frame.head.load(std::memory_order_relaxed);
  const std::uint64_t bytes = frame.payload_bytes.load(std::memory_order_relaxed);
  const std::uint64_t bytes_max = which < layout_.banks ? layout_.out_bytes : 0;
  if (which < layout_.heads() && bytes <= bytes_max) {
    wire_image head;
    std::memcpy(head.data(), block_->bytes().data() + layout_.head_at(which), head.size());
    const landing to = sink.admit(head, bytes);
    if (to.admitted) {
      if (!to.region.empty())
        std::memcpy(to.region.data(), block_->bytes().data() + layout_.out_at(which),
                    to.region.size());
      sink.landed(to.place, true);
    }
  } else {
    ++frames_dropped_;
  }
  frame.taken_at.store(monotonic_now(), std::memory_order_relaxed);
  w.taken.store(++taken_, std::memory_order_release);
  sender_->nudge();
}

bool incoming_lane::has_ended() const noexcept {
  if (broken_) return true;
  if (frames() != 0) return false;
  const bool over = words().ended.load(std::memory_order_acquire) != 0 || sender_->has_gone() ||
                    process_->has_ended();
  return over && frames() == 0;
}

}  // namespace moetier::transport
