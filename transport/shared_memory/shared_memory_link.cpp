#include "transport/shared_memory/shared_memory_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sched.h>

#include "schemas/base/assert.hpp"
#include "transport/exchange/sealed_address.hpp"

namespace moetier::transport {
namespace {

using clock = std::chrono::steady_clock;

// How often a half looks whether its peers still run; it sleeps no longer either.
constexpr auto k_look_every = std::chrono::milliseconds(50);
// How often an offer that could not be opened is tried again, once a look, and how many are kept.
constexpr std::uint32_t k_tries_max = 200;
constexpr std::size_t k_refused_max = 128;
constexpr std::size_t k_incoming_max = 2048;

// A number of its own for each host's boot: processes of another are never asked for. Read once, by
// the first half that is made.
const std::array<char, 36>& boot_id() {
  static const std::array<char, 36> k_id = [] {
    std::array<char, 36> id{};
    const descriptor fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (fd.get() >= 0) {
      [[maybe_unused]] const auto got = read(fd.get(), id.data(), id.size());
    }
    return id;
  }();
  return k_id;
}

struct address_body {
  block_name name;
  std::array<char, 36> boot{};
  std::uint32_t unused = 0;
};
static_assert(std::has_unique_object_representations_v<address_body>);

}  // namespace

expected<std::unique_ptr<Link>> shared_memory_link::make() {
  auto self = front::make();
  if (!self) return unexpected_error(self.error());
  return std::unique_ptr<Link>(new shared_memory_link(std::move(*self)));
}

shared_memory_link::shared_memory_link(std::unique_ptr<front> self) : self_(std::move(self)) {
  const address_body body{.name = self_->name(), .boot = boot_id()};
  address_ = seal_address(address_tag::shared_memory, std::as_bytes(std::span(&body, 1)));
}

// First gone, then the lanes' bells: who hears them sees it.
shared_memory_link::~shared_memory_link() {
  self_->go();
  peers_.clear();
}

expected<link_peer> shared_memory_link::connect(const member_address& address,
                                                std::shared_ptr<bank_memory> memory) {
  const auto opened = open_address(address_tag::shared_memory, address);
  if (!opened) return unexpected_error(opened.error());
  address_body body;
  if (opened->size() != sizeof body)
    return fail(reason::frame_malformed, "a member's address has another length");
  std::memcpy(&body, opened->data(), sizeof body);
  if (body.boot != boot_id())
    return fail(reason::carrier_unavailable, "shared_memory",
                "the peer is on another host; there set transport.carrier: ucx");
  auto lane = outgoing_lane::make(body.name, *self_, std::move(memory));
  if (!lane) return unexpected_error(lane.error());
  peers_.emplace(++last_peer_, peer{.lane = std::move(*lane)});
  return last_peer_;
}

void shared_memory_link::disconnect(link_peer id) { peers_.erase(id); }

link_send shared_memory_link::send(link_peer id, std::uint32_t head, std::size_t payload_bytes,
                                   link_place place) {
  const auto found = peers_.find(id);
  MOETIER_ASSERT(found != peers_.end());
  peer& p = found->second;
  if (p.lane == nullptr) return link_send::failed;
  p.lane->send(head, payload_bytes, place);
  last_useful_ = clock::now();
  return link_send::pending;
}

// In most calls the bell says that there is nothing to do.
void shared_memory_link::progress(FrameSink& sink) {
  const bool more = look_after_peers();
  const std::uint32_t rung = self_->rung();
  if (rung == heard_ && !more) return;
  heard_ = rung;
  for (auto& [id, p] : peers_) {
    if (p.lane != nullptr && p.lane->has_gone()) p.is_over = true;
  }
  take_offers();
  bool useful = false;
  for (const auto& lane : incoming_) {
    useful = lane->receive(sink) || useful;
  }
  for (auto& [id, p] : peers_) {
    link_place place = 0;
    time_ns at = 0;
    while (p.lane != nullptr && p.lane->sent(place, at)) {
      sink.sent(place, at);
      useful = true;
    }
    if (p.lane == nullptr || !p.is_over) continue;
    const bool left = p.lane->has_gone();
    p.lane.reset();
    left ? sink.left(id) : sink.gone(id);
  }
  if (useful) last_useful_ = clock::now();
}

void shared_memory_link::take_offers() {
  for (lane_offer offer; incoming_.size() < k_incoming_max && self_->take(offer);) {
    if (auto lane = incoming_lane::open(offer)) {
      incoming_.push_back(std::move(*lane));
    } else if (refused_.size() < k_refused_max) {
      refused_.push_back({.offer = offer});
    }
  }
}

void shared_memory_link::try_offers_again() {
  std::erase_if(refused_, [&](refused_offer& r) {
    auto lane = incoming_lane::open(r.offer);
    if (lane) incoming_.push_back(std::move(*lane));
    return lane || ++r.tries >= k_tries_max;
  });
}

// The bell says when something is there, except where a peer ended between its act and the ring.
bool shared_memory_link::look_after_peers() {
  const auto now = clock::now();
  if (now < last_look_ + k_look_every) return false;
  last_look_ = now;
  self_->look_at_doors();
  try_offers_again();
  std::erase_if(incoming_, [&](const auto& lane) {
    if (!lane->has_ended()) return false;
    dropped_by_ended_ += lane->frames_dropped();
    return true;
  });
  for (auto& [id, p] : peers_) p.is_over = p.is_over || (p.lane != nullptr && p.lane->is_lost());
  return true;
}

void shared_memory_link::wait(FrameSink& sink, std::chrono::nanoseconds spin,
                              std::chrono::nanoseconds limit) {
  const auto deadline = clock::now() + limit;
  for (;;) {
    progress(sink);
    const auto now = clock::now();
    if (sink.has_work() || woken_.load(std::memory_order_acquire) || now >= deadline) break;
    if (self_->rung() != heard_) continue;
    if (now < last_useful_ + spin) {
      // The peer may wait for this very core.
      ::sched_yield();
      continue;
    }
    self_->sleep(heard_, std::min<std::chrono::nanoseconds>(deadline - now, k_look_every));
  }
  woken_.store(false, std::memory_order_release);
}

void shared_memory_link::wake() noexcept {
  woken_.store(true, std::memory_order_release);
  self_->ring();
}

std::uint64_t shared_memory_link::frames_dropped() const noexcept {
  std::uint64_t all = dropped_by_ended_;
  for (const auto& lane : incoming_) all += lane->frames_dropped();
  return all;
}

}  // namespace moetier::transport
