#pragma once
// Writes the waits of a session's calls to the flight recorder, where there is one, and tells who
// asked for it of a call that ends in TIMEOUT. Thread: owner. Never allocates, but for what
// on_timeout does.

#include "transport/client/source/session_call.hpp"

namespace moetier::client {

class call_journal final {
 public:
  call_journal(transport::wait_ring* waits, session_id session,
               const std::function<void(const transport::wait_record&)>& on_timeout)
      : waits_(waits), session_(session), on_timeout_(on_timeout) {}

  // What a worker just answered (ticket::last_answer()), in this attempt of this step.
  void answered(const session_call& c, std::uint64_t step, std::uint8_t attempt) const noexcept;
  // That the call gives up on a worker that was lost or late; nothing of other failures.
  void given_up(const session_call& c, std::uint64_t step, std::uint8_t attempt) const;

 private:
  transport::wait_ring* waits_;
  session_id session_;
  std::function<void(const transport::wait_record&)> on_timeout_;
};

}  // namespace moetier::client
