#pragma once
// When a session may begin its next step. Tokens of its steps come out of a rate that may change at
// any time; a step begins while there is credit and is paid for as it goes, so the one that
// overdraws is not held up half way, and the next one waits. Apart from that a session whose call a
// worker had no time for begins no step for a moment: asking again at once would only add to the
// load. Pure: time comes in as a value. Thread: owner. Never allocates.

#include <cstdint>

#include "schemas/base/time.hpp"

namespace moetier::client {

// Of an unused rate, what can be saved up for later.
inline constexpr duration_ns k_credit_saved = 100 * k_millisecond;

class step_credit final {
 public:
  // 0: a step may begin now; else how long it is to wait. rate: tokens a second, 0 = no limit.
  duration_ns wait_for_step(std::uint64_t rate, time_ns now) noexcept;
  void charge(std::uint64_t tokens) noexcept;
  void back_off(duration_ns wait, time_ns now) noexcept { not_before_ = now + wait; }

 private:
  std::int64_t level_ = 0;  // tokens * 10^9
  time_ns filled_at_ = 0;   // 0 = never: full at first
  time_ns not_before_ = 0;
};

}  // namespace moetier::client
