#pragma once
// Faults of an in-process exchange hub, for tests and the simulator: a rule decides what happens to
// each frame on its way, and whole members can be stalled (nothing reaches them until they resume)
// or killed (their peers see them lost), and the connections between two that live can be broken.
// Made and owned by the test, handed to make_in_process();
// the product passes nullptr. Thread: any; the rule is called by the sending member's thread, one
// call at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "schemas/wire/wire_header.hpp"
#include "transport/communication.hpp"

namespace moetier::transport {

struct frame_fault {
  enum class act : std::uint8_t {
    none,
    drop,
    duplicate,     // arrives twice, the second time after `amount` later frames
    delay,         // held until `amount` later frames have reached the same member, or flush()
    truncate,      // the last `amount` bytes of the payload are missing
    flip_header,   // bit `amount` of the header is wrong
    flip_payload,  // bit `amount` of the payload is wrong
  };
  act what = act::none;
  std::uint32_t amount = 0;
};

class fault_hooks final {
 public:
  using rule = std::function<frame_fault(const wire_header&)>;
  using member = std::pair<member_role, std::uint16_t>;

  void set_rule(rule decide);
  void stall(member who);
  void resume(member who);
  void kill(member who);
  // Both see each other lost and may connect again; frames that are under way come late.
  void break_between(member a, member b);
  void flush();  // delivers every delayed frame

  // For the hub.
  void set_on_change(std::function<void()> on_change);
  frame_fault decide(const wire_header& header);
  bool is_stalled(member who) const;
  bool is_killed(member who) const;
  std::uint64_t breaks_between(member a, member b) const;
  std::uint64_t flushes() const;

 private:
  void change(const std::function<void()>& edit);

  mutable std::mutex mutex_;
  rule decide_;
  std::function<void()> on_change_;
  std::set<member> stalled_;
  std::set<member> killed_;
  std::map<std::pair<member, member>, std::uint64_t> breaks_;  // the smaller member first
  std::uint64_t flushes_ = 0;
};

}  // namespace moetier::transport
