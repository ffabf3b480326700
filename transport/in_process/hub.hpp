#pragma once
// The exchange hub of one in-process carrier: it knows every member's endpoint by its address,
// carries frames into their mailboxes, and tells peers when one is gone. Owned jointly by the
// carrier and its members, so that either may end first. Thread: any.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/communication.hpp"
#include "transport/exchange/wake_event.hpp"
#include "transport/in_process/fault_hooks.hpp"
#include "transport/in_process/mailbox.hpp"

namespace moetier::transport {

// Where one member receives. Shared by the member and the peers that send to it.
struct in_process_endpoint {
  in_process_endpoint(std::uint64_t number, fault_hooks::member who, std::size_t frames_max)
      : id(number), member(who), frames(frames_max) {}

  const std::uint64_t id;
  const fault_hooks::member member;
  mailbox frames;
  wake_event wake;
  std::atomic<bool> closed{false};
  std::atomic<std::uint64_t> overflowed{0};

  struct delayed_frame {
    std::uint32_t frames_left = 0;
    in_process_frame frame;
  };
  std::mutex delayed_mutex;  // faults only
  std::vector<delayed_frame> delayed;
  std::uint64_t flushes_seen = 0;
};

class in_process_hub final : public std::enable_shared_from_this<in_process_hub> {
 public:
  explicit in_process_hub(fault_hooks* hooks) : hooks_(hooks) {}

  std::shared_ptr<in_process_endpoint> join(fault_hooks::member who, std::size_t frames_max);
  void leave(in_process_endpoint& endpoint);
  std::shared_ptr<in_process_endpoint> find(std::uint64_t id) const;  // null: gone or never there

  // Carries one frame; faults happen here. The frame's memory is borrowed until it is popped.
  void carry(in_process_endpoint& from, in_process_endpoint& to, in_process_frame&& frame);

  bool is_gone(const in_process_endpoint& endpoint) const;
  bool is_stalled(const in_process_endpoint& endpoint) const;
  // How often the connection between the two was broken.
  std::uint64_t breaks_between(const in_process_endpoint& a, const in_process_endpoint& b) const;
  // Moves delayed frames on after a flush. Thread: the endpoint's member.
  void settle_delayed(in_process_endpoint& endpoint);
  // Grows whenever a member may have gone.
  std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }
  void wake_all();

 private:
  void carry_with_faults(in_process_endpoint& to, in_process_frame&& frame);
  void hold(in_process_endpoint& to, std::uint32_t frames, in_process_frame&& frame);
  void deliver(in_process_endpoint& to, in_process_frame&& frame);

  fault_hooks* hooks_;
  mutable std::mutex mutex_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::shared_ptr<in_process_endpoint>> endpoints_;
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace moetier::transport
