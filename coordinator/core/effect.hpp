#pragma once
// What the coordinator's core asks its shell to do, as values, in order. The core assumes nothing
// about when an effect is done; what matters comes back as an event (record_written, a worker's
// message). Thread: any (values).

#include <string>
#include <variant>
#include <vector>

#include "coordinator/core/event.hpp"
#include "coordinator/core/log_event.hpp"
#include "coordinator/core/record.hpp"
#include "schemas/base/time.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/snapshot/suspicion.hpp"

namespace moetier::coordinator {

struct session_grant {
  session_id session;
  source_id source;
  std::uint32_t tokens_max = 0;
  std::uint32_t micro_batches = 1;
  std::uint32_t top_k = 0;
  duration_ns lease = 0;
  duration_ns call_deadline = 0;
  duration_ns step_deadline = 0;
  deadline_class urgency = deadline_class::decode;
  std::uint64_t tokens_per_second = 0;  // now; 0 = no limit
  transport::snapshot_ptr snapshot;     // null while nothing is committed
};

struct send_to_worker {
  link_number link = 0;
  control::message body;
};
struct cut_worker_link {
  link_number link = 0;
};
struct write_record {
  epoch_number expected;
  record value;
};  // compare-and-set: only if the stored epoch == expected
struct publish_snapshot {
  transport::snapshot_ptr snapshot;
};
struct tell_suspicion {
  transport::suspicion_ptr suspicion;
};  // SUSPECT: every source may avoid these workers from now on
struct answer_session {
  request_token token = 0;
  expected<session_grant> grant;
};  // open, resume
struct answer_done {
  request_token token = 0;
  expected<void> result;
};  // attach, close, load and drop of an adapter
struct session_ended {
  session_id session;
  error why;
};  // lapsed or fenced: tell its client
struct stopped {
  bool failed = false;
  std::string why;
  reason cause = reason::internal_error;  // of a failure
};  // R11: a coordinator that met a higher epoch stops, one that has nothing and no disk as well

using effect =
    std::variant<send_to_worker, cut_worker_link, write_record, publish_snapshot, tell_suspicion,
                 answer_session, answer_done, session_ended, log_event, stopped>;
using effects = std::vector<effect>;

}  // namespace moetier::coordinator
