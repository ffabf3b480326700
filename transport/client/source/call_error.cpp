#include "transport/client/source/call_error.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schemas/base/mix.hpp"
#include "transport/time_needed.hpp"

namespace moetier::client {
namespace {

// What a worker said no to.
error refusal_of(const session_call& c, time_ns now, std::uint64_t spread) {
  const call_failure& f = c.call.failure();
  const std::uint16_t worker = f.worker.value;
  const std::uint16_t layer = c.names.layer.value;
  const transport::time_needed needed = transport::time_needed_in(f.held);
  if (f.answered == status::overloaded) {
    error busy = make_error(
        reason::no_credit,
        fmt::format("worker {} has {} us of calls before one of layer {} that takes {} us; {} us "
                    "were left",
                    worker, needed.ahead / k_microsecond, layer, needed.call / k_microsecond,
                    (c.deadline - c.submitted) / k_microsecond));
    const duration_ns wait = std::max({needed.ahead, needed.call, k_millisecond});
    busy.retry_after_ns = wait / 2 + mix(spread) % wait;
    return busy;
  }
  if (f.answered == status::timeout) {
    return make_error(reason::deadline_passed,
                      fmt::format("a call of layer {} that takes worker {} {} us", layer, worker,
                                  needed.call / k_microsecond),
                      (std::max(now, c.deadline) - c.submitted) / k_millisecond);
  }
  return make_error(reason::worker_refused, worker, layer, status_name(f.answered));
}

}  // namespace

error error_of(const session_call& c, time_ns now, std::uint64_t spread) {
  const call_failure& f = c.call.failure();
  const std::uint16_t worker = f.worker.value;
  const std::uint16_t layer = c.names.layer.value;
  switch (f.kind) {
    case failure_kind::late:
      return make_error(reason::worker_late, worker, layer, f.bytes_due, f.bytes_seen,
                        (now - c.submitted) / k_microsecond);
    case failure_kind::stale:
      return make_error(reason::generation_stale, worker, c.call.snapshot().generation.value,
                        f.held);
    case failure_kind::corrupt: return make_error(reason::rows_corrupt, worker, layer);
    case failure_kind::refused: return refusal_of(c, now, spread);
    case failure_kind::lost:
    case failure_kind::none: break;
  }
  return make_error(reason::worker_lost, worker, layer);
}

}  // namespace moetier::client
