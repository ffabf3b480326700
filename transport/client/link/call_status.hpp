#pragma once
// A typed error as the RPC's Status and back, and the Call that opens every request: the one place
// where both ends agree on them. Thread: any.

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "schemas/tier.capnp.h"

namespace moetier::client {

void write_ok(rpc::Status::Builder to, std::uint64_t request_id);
void write_error(rpc::Status::Builder to, const error& what, std::uint64_t request_id);

// OK is a value. A status or reason that this build does not know is INTERNAL resp. kept as text.
expected<void> read_status(rpc::Status::Reader from);

// The limit a call names: protocol first (VERSION), then the deadline (absent: INVALID; cut to
// k_deadline_max). `name` is the method, for the sentence.
expected<duration_ns> check_call(rpc::Call::Reader call, const char* name);

void write_call(rpc::Call::Builder to, std::uint64_t client, std::uint64_t request,
                duration_ns limit);

}  // namespace moetier::client
