#pragma once
// The one outward list of statuses: return values of the C ABI, RPC answers, status words, exit
// codes of the CLI. Numbers are part of the protocol and never change meaning. Thread: any.

#include <cstdint>
#include <string_view>

namespace moetier {

enum class status : std::uint8_t {
  ok = 0,       // all rows complete
  pending = 1,  // ticket not ended yet
  degraded =
      2,  // rows usable, named (token, expert) pairs left out; only where the session asked for it
  skipped = 3,            // an earlier ticket of this step failed, nothing was sent
  invalid = 10,           // argument, shape, dtype, id or bound
  bad_state = 11,         // order of calls broken
  unsupported = 12,       // no candidate; the text says what lacks
  version = 13,           // protocol or struct version
  model_mismatch = 14,    // model fingerprint
  denied = 15,            // rights
  timeout = 20,           // deadline passed; the text names the late worker
  stale_generation = 21,  // a worker does not hold the generation
  unavailable = 22,       // an expert has no live replica, or the coordinator is not serving yet
  overloaded = 23,        // credits, queue or admission
  cancelled = 24,         // closed or aborted by the caller
  session_lost = 25,      // lease lapsed or fenced
  corrupt = 30,           // checksum of rows or weights
  device = 31,            // device error
  no_memory = 32,         // bill over the limit, nothing allocated
  internal = 39,          // our bug
};

// "OK", "PENDING", ...; "UNKNOWN" for a number outside the list.
std::string_view status_name(status s) noexcept;

// Whether the same request may succeed later without a change by the caller.
bool is_retryable(status s) noexcept;

}  // namespace moetier
