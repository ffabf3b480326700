#include "transport/in_process/in_process_link.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <sched.h>

#include "schemas/base/assert.hpp"
#include "transport/exchange/limits.hpp"
#include "transport/exchange/sealed_address.hpp"

namespace moetier::transport {
namespace {

// An address names the hub, so that one of another hub finds nobody, and the endpoint.
struct address_body {
  std::uint64_t hub = 0;
  std::uint64_t endpoint = 0;
};

address_body body_of(const in_process_hub& hub, std::uint64_t endpoint) {
  return {.hub = reinterpret_cast<std::uintptr_t>(&hub), .endpoint = endpoint};
}

// Every bank of every peer can have one frame under way, and a doubled one.
std::size_t frames_max(std::uint32_t peers_max) {
  return std::bit_ceil(std::size_t{2} * k_banks_max * std::max(peers_max, 1u));
}

}  // namespace

in_process_link::in_process_link(std::shared_ptr<in_process_hub> hub, fault_hooks::member self,
                                 std::uint32_t peers_max)
    : hub_(std::move(hub)), self_(hub_->join(self, frames_max(peers_max))) {
  const address_body body = body_of(*hub_, self_->id);
  address_ = seal_address(address_tag::in_process, std::as_bytes(std::span(&body, 1)));
}

in_process_link::~in_process_link() { hub_->leave(*self_); }

expected<link_peer> in_process_link::connect(const member_address& address,
                                             std::shared_ptr<bank_memory> memory) {
  const auto bytes = open_address(address_tag::in_process, address);
  if (!bytes) return unexpected_error(bytes.error());
  address_body body;
  if (bytes->size() != sizeof body)
    return fail(reason::frame_malformed, "a member's address has another length");
  std::memcpy(&body, bytes->data(), sizeof body);
  auto endpoint = body.hub == body_of(*hub_, 0).hub ? hub_->find(body.endpoint) : nullptr;
  if (!endpoint || hub_->is_gone(*endpoint))
    return fail(reason::carrier_unavailable, "in_process", "the member is gone");
  const std::uint64_t breaks = hub_->breaks_between(*self_, *endpoint);
  peers_.emplace(
      ++last_peer_,
      peer{.endpoint = std::move(endpoint), .memory = std::move(memory), .breaks = breaks});
  return last_peer_;
}

void in_process_link::disconnect(link_peer id) { peers_.erase(id); }

link_send in_process_link::send(link_peer id, std::uint32_t bank, std::size_t payload_bytes,
                                link_place) {
  const auto found = peers_.find(id);
  MOETIER_ASSERT(found != peers_.end());
  peer& p = found->second;
  if (p.is_gone || is_broken(p)) return link_send::failed;
  in_process_frame frame;
  const auto head = p.memory->head(bank);
  std::copy(head.begin(), head.end(), frame.head.begin());
  frame.payload = p.memory->out(bank).first(payload_bytes);
  frame.memory = p.memory;
  hub_->carry(*self_, *p.endpoint, std::move(frame));
  last_useful_ = std::chrono::steady_clock::now();
  return link_send::done;
}

void in_process_link::progress(FrameSink& sink) {
  hub_->settle_delayed(*self_);
  const std::uint64_t changes = hub_->changes();
  if (changes != changes_seen_) find_lost();
  if (!hub_->is_stalled(*self_)) receive(sink);
  if (changes == changes_seen_) return;
  // What a member sent before it left has been received above.
  changes_seen_ = changes;
  for (auto& [id, p] : peers_) {
    if (p.is_gone && !std::exchange(p.is_reported, true)) sink.lost(id);
  }
}

bool in_process_link::is_broken(const peer& p) const {
  return hub_->is_gone(*p.endpoint) || hub_->breaks_between(*self_, *p.endpoint) != p.breaks;
}

void in_process_link::find_lost() {
  for (auto& [id, p] : peers_) p.is_gone = p.is_gone || is_broken(p);
}

void in_process_link::receive(FrameSink& sink) {
  in_process_frame frame;
  bool useful = false;
  while (self_->frames.pop(frame)) {
    useful = true;
    const landing to = sink.admit(frame.head, frame.payload.size());
    if (!to.admitted) continue;
    if (!frame.payload.empty())
      std::memcpy(to.region.data(), frame.payload.data(), frame.payload.size());
    sink.landed(to.place, true);
  }
  if (useful) last_useful_ = std::chrono::steady_clock::now();
}

bool in_process_link::has_input() const {
  return hub_->changes() != changes_seen_ ||
         (self_->frames.has_frame() && !hub_->is_stalled(*self_));
}

void in_process_link::wait(FrameSink& sink, std::chrono::nanoseconds spin,
                           std::chrono::nanoseconds limit) {
  using clock = std::chrono::steady_clock;
  auto now = clock::now();
  const auto deadline = now + limit;
  const auto sleep_at = last_useful_ + spin;
  while (!sink.has_work() && !has_input() && !self_->wake.is_set() && now < deadline) {
    if (now >= sleep_at) {
      self_->wake.sleep(-1, deadline - now);
    } else {
      // The peer may wait for this very core, and would get it only when this one has spun its time
      // out: 112 us a round trip instead of 4.
      ::sched_yield();
    }
    now = clock::now();
  }
  self_->wake.clear();
}

std::uint64_t in_process_link::frames_dropped() const noexcept {
  return self_->overflowed.load(std::memory_order_relaxed);
}

}  // namespace moetier::transport
