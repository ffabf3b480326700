#pragma once
// What one or more halves of the data plane have seen, as families that every role with a half
// shows. Thread: any (a pure function).

#include "actors/http/metric_text.hpp"
#include "transport/communication.hpp"

namespace moetier::http {

void add_transport_families(metric_text& to, const transport::carrier_counters& seen);

}  // namespace moetier::http
