#include "transport/client/source/call_journal.hpp"

namespace moetier::client {

void call_journal::answered(const session_call& c, std::uint64_t step,
                            std::uint8_t attempt) const noexcept {
  if (waits_ == nullptr) return;
  const answered_exchange& a = c.call.last_answer();
  // What failed by being lost or late is recorded when the call gives up on it.
  if (a.outcome == status::timeout || a.outcome == status::unavailable) return;
  const time_ns now = monotonic_now();
  waits_->record({.ended = now,
                  .peer = a.worker.value,
                  .session = session_,
                  .step = step,
                  .layer = c.names.layer,
                  .micro_batch = c.names.micro_batch,
                  .chunk = a.chunk,
                  .attempt = attempt,
                  .outcome = a.outcome,
                  .bytes_due = a.bytes_due,
                  .bytes_seen = a.bytes_seen,
                  .age = now - c.submitted});
}

void call_journal::given_up(const session_call& c, std::uint64_t step, std::uint8_t attempt) const {
  const call_failure& f = c.call.failure();
  if (waits_ == nullptr || (f.kind != failure_kind::late && f.kind != failure_kind::lost)) return;
  const time_ns now = monotonic_now();
  const transport::wait_record wait{.ended = now,
                                    .peer = f.worker.value,
                                    .session = session_,
                                    .step = step,
                                    .layer = c.names.layer,
                                    .micro_batch = c.names.micro_batch,
                                    .attempt = attempt,
                                    .outcome = status_of(f),
                                    .bytes_due = f.bytes_due,
                                    .bytes_seen = f.bytes_seen,
                                    .age = now - c.submitted};
  waits_->record(wait);
  // A call that still has time is tried again; one that has not ends here.
  if (f.kind == failure_kind::late && now >= c.deadline && on_timeout_) on_timeout_(wait);
}

}  // namespace moetier::client
