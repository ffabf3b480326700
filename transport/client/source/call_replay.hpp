#pragma once
// When a failed call may be tried again: pure rules over the failure and two snapshots.
// Thread: any.

#include "transport/client/source/ticket.hpp"

namespace moetier::client {

// Whether a failure of this kind came from losing a worker, not from the call itself.
bool failed_by_loss(const call_failure& failure) noexcept;

// Whether trying again under `next` may end otherwise than the attempt that failed under `failed`.
bool may_end_otherwise(const call_failure& failure, const transport::routing_snapshot& failed,
                       const transport::routing_snapshot& next) noexcept;

}  // namespace moetier::client
