#pragma once
// What a session is built from: its options and the snapshot it opens under, checked against each
// other, and the sizes of its calls, exchanges and tickets that follow. Pure.
// Errors: invalid_argument with the range that is allowed; not_enabled with what the tier lacks.
// Thread: any.

#include "transport/client/source/call_check.hpp"
#include "transport/client/source/ticket.hpp"

namespace moetier::client {

struct opening {
  ticket_shape ticket;
  call_bounds bounds;
  transport::source_shape exchange;
};

expected<opening> plan_opening(const source_session_options& options,
                               const transport::routing_snapshot& snapshot);

}  // namespace moetier::client
