#pragma once
// A session as the core keeps it: one attention service's lease, its source's place in the attach
// tables and what the workers were told of it. Private to coordinator/core. Thread: owner.

#include <optional>

#include "coordinator/core/event.hpp"
#include "schemas/base/time.hpp"

namespace moetier::coordinator {

struct session {
  session_id id;
  source_id source;
  session_request request;  // limits as granted
  time_ns opened_at = 0;
  time_ns lease_until = 0;
  session_use use;                                       // as of its last renewal
  std::optional<control::source_attachment> attachment;  // what workers are told, once asked for
  std::optional<request_token> attach_token;             // an attach not answered yet
  time_ns attach_until = 0;
  time_ns resend_at = 0;
};

}  // namespace moetier::coordinator
