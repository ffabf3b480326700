#include "transport/in_process/hub.hpp"

#include <algorithm>
#include <utility>

namespace moetier::transport {
namespace {

void flip_bit(std::span<std::byte> bytes, std::uint32_t bit) {
  if (bytes.empty()) return;
  bytes[bit / 8 % bytes.size()] ^= static_cast<std::byte>(1u << (bit % 8));
}

// A frame that owns its payload: what was sent stays what it was, however late it arrives.
in_process_frame detached_copy(const in_process_frame& frame) {
  in_process_frame copy;
  copy.head = frame.head;
  copy.copy.assign(frame.payload.begin(), frame.payload.end());
  copy.payload = copy.copy;
  return copy;
}

}  // namespace

std::shared_ptr<in_process_endpoint> in_process_hub::join(fault_hooks::member who,
                                                          std::size_t frames_max) {
  const std::lock_guard lock(mutex_);
  auto endpoint = std::make_shared<in_process_endpoint>(next_id_++, who, frames_max);
  endpoints_.emplace(endpoint->id, endpoint);
  return endpoint;
}

void in_process_hub::leave(in_process_endpoint& endpoint) {
  {
    const std::lock_guard lock(mutex_);
    endpoints_.erase(endpoint.id);
  }
  endpoint.closed.store(true, std::memory_order_release);
  wake_all();
}

std::shared_ptr<in_process_endpoint> in_process_hub::find(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : found->second;
}

void in_process_hub::carry(in_process_endpoint& from, in_process_endpoint& to,
                           in_process_frame&& frame) {
  if (hooks_ == nullptr) return deliver(to, std::move(frame));
  if (!hooks_->is_killed(from.member)) carry_with_faults(to, detached_copy(frame));
}

void in_process_hub::carry_with_faults(in_process_endpoint& to, in_process_frame&& frame) {
  wire_header header;
  decode_header(frame.head, header);
  const frame_fault fault = hooks_->decide(header);
  switch (fault.what) {
    case frame_fault::act::none: break;
    case frame_fault::act::drop: return;
    // The first one, which follows at once, also counts as a later frame.
    case frame_fault::act::duplicate: hold(to, fault.amount + 1, detached_copy(frame)); break;
    case frame_fault::act::delay: return hold(to, fault.amount, std::move(frame));
    case frame_fault::act::truncate:
      frame.payload = frame.payload.first(
          frame.payload.size() - std::min<std::size_t>(fault.amount, frame.payload.size()));
      break;
    case frame_fault::act::flip_header: flip_bit(frame.head, fault.amount); break;
    case frame_fault::act::flip_payload: flip_bit(frame.copy, fault.amount); break;
  }
  deliver(to, std::move(frame));
  // This frame went past those that wait; some of them may follow now.
  std::vector<in_process_frame> due;
  {
    const std::lock_guard lock(to.delayed_mutex);
    std::erase_if(to.delayed, [&](in_process_endpoint::delayed_frame& waiting) {
      if (waiting.frames_left > 1) return --waiting.frames_left, false;
      due.push_back(std::move(waiting.frame));
      return true;
    });
  }
  for (in_process_frame& late : due) deliver(to, std::move(late));
}

void in_process_hub::hold(in_process_endpoint& to, std::uint32_t frames, in_process_frame&& frame) {
  const std::lock_guard lock(to.delayed_mutex);
  to.delayed.push_back({frames, std::move(frame)});
}

void in_process_hub::deliver(in_process_endpoint& to, in_process_frame&& frame) {
  if (!to.frames.push(std::move(frame))) to.overflowed.fetch_add(1, std::memory_order_relaxed);
  to.wake.signal();
}

bool in_process_hub::is_gone(const in_process_endpoint& endpoint) const {
  return endpoint.closed.load(std::memory_order_acquire) ||
         (hooks_ != nullptr && hooks_->is_killed(endpoint.member));
}

bool in_process_hub::is_stalled(const in_process_endpoint& endpoint) const {
  return hooks_ != nullptr &&
         (hooks_->is_stalled(endpoint.member) || hooks_->is_killed(endpoint.member));
}

std::uint64_t in_process_hub::breaks_between(const in_process_endpoint& a,
                                             const in_process_endpoint& b) const {
  return hooks_ == nullptr ? 0 : hooks_->breaks_between(a.member, b.member);
}

void in_process_hub::settle_delayed(in_process_endpoint& endpoint) {
  if (hooks_ == nullptr || hooks_->flushes() == endpoint.flushes_seen) return;
  endpoint.flushes_seen = hooks_->flushes();
  std::vector<in_process_endpoint::delayed_frame> due;
  {
    const std::lock_guard lock(endpoint.delayed_mutex);
    due.swap(endpoint.delayed);
  }
  for (auto& waiting : due) deliver(endpoint, std::move(waiting.frame));
}

void in_process_hub::wake_all() {
  changes_.fetch_add(1, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  for (const auto& [id, endpoint] : endpoints_) endpoint->wake.signal();
}

}  // namespace moetier::transport
