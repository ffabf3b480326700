#pragma once
// The flight recorder as JSON text, whole or summed up by peer. Thread: any (pure functions).

#include <string>
#include <string_view>

#include "schemas/base/time.hpp"
#include "transport/waits/wait_ring.hpp"

namespace moetier::transport {

// moetier.flight/1: every wait that is kept, oldest first. `peers`: what a peer is, "worker" or
// "source".
std::string flight_document(const wait_ring& ring, std::string_view peers, time_ns now);

// moetier.waits/1: by peer how many waits are kept, how they ended, how long they took (p50, p99,
// longest); then the newest that did not end in OK.
std::string waits_document(const wait_ring& ring, std::string_view peers, time_ns now);

}  // namespace moetier::transport
