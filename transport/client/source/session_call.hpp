#pragma once
// A call of a session, beside its ticket: what it is called, when it must end, what it took so far.
// Thread: owner.

#include "transport/client/source/ticket.hpp"

namespace moetier::client {

struct call_names {
  layer_id layer;
  std::uint16_t micro_batch = 0;
  std::uint16_t repeat_idx = 0;
  std::uint16_t repeat_count = 1;
};

struct session_call {
  ticket call;
  call_names names;
  time_ns submitted = 0;
  time_ns deadline = 0;
  time_ns sent = 0;     // when submit() ended
  time_ns stalled = 0;  // since when a chunk waits for a bank; 0 = none does
  std::uint32_t first_chunk = 0;
  worker_mask asked_of = 0;  // whom it could not be kept from, by what is known now
  bool steered = false;      // given up for a suspect's sake: to be tried again in any case
  call_times times;
};

}  // namespace moetier::client
