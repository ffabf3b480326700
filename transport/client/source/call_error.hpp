#pragma once
// What a failed call tells its caller. Thread: any.

#include "transport/client/source/session_call.hpp"

namespace moetier::client {

// Of a call that failed by `now`. `spread` differs from session to session and from step to step:
// those that an overloaded worker refused together do not come back together.
error error_of(const session_call& c, time_ns now, std::uint64_t spread);

}  // namespace moetier::client
