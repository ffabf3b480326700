#pragma once
// Everything that can happen to the coordinator's core, as values. Shells (the actor, the
// simulator) translate the world into these; time comes with the call of step(). Thread: any
// (values).

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "coordinator/core/record.hpp"
#include "schemas/base/deadline_class.hpp"
#include "schemas/control/messages.hpp"
#include "transport/communication.hpp"

namespace moetier::coordinator {

using link_number = std::uint64_t;  // one connection of a worker; never reused within a process
using request_token =
    std::uint64_t;  // names the asker of a request until it is answered exactly once

struct session_request {
  std::string tenant = "default";
  std::uint64_t client = 0;         // 64 random bits of the client process
  incarnation_id incarnation;       // of the source
  std::uint32_t tokens_max = 0;     // 0 = the tier's limit
  std::uint32_t micro_batches = 1;  // 1..4
  std::uint32_t top_k = 0;          // 0 = the model's
  std::uint8_t return_mode = 0;     // 0 partial, 1 exact
  dtype return_dtype = dtype::f32;
  bool thin = false;            // served by the gateway
  bool gate_on_tier = false;    // calls may come without logits and ids
  bool shared_experts = false;  // the tier computes and adds them
  bool flags_bad_rows = false;
  std::uint64_t model_fingerprint = 0;    // 0 = any
  std::optional<deadline_class> urgency;  // none: the tenant's highest
};

struct worker_message {
  link_number link = 0;
  control::message body;
};
struct worker_link_lost {
  link_number link = 0;
};
struct time_passed {};  // at least every heartbeat interval
struct record_written {
  epoch_number epoch;
  bool done = true;       // false: the compare-and-set failed or the disk did
  std::string trouble{};  // the disk's, one sentence; the same write may succeed later
};
struct open_session {
  request_token token = 0;
  session_request request;
};
struct attach_session {
  request_token token = 0;
  session_id session;
  incarnation_id incarnation;
  transport::source_shape shape;
  transport::member_address address;
};
// A client whose link came back (to this or a restarted coordinator) claims the session it still
// holds.
struct resume_session {
  request_token token = 0;
  session_id session;
  incarnation_id incarnation;
  std::string tenant{};  // proved by the link; empty = not proved
};
// What a session's source half says it did; for people alone.
struct session_use {
  std::uint64_t calls = 0;
  std::uint64_t token_layers = 0;  // tokens of all calls of all layers
  generation_number generation;    // that it serves by; 0 = not told
};
struct renew_session {
  session_id session;
  incarnation_id incarnation;
  session_use use{};
};
// A call of this session ended in TIMEOUT: that worker had not answered. Nobody waits for more.
struct late_report {
  session_id session;
  incarnation_id incarnation;  // of the source
  worker_id worker;
  incarnation_id worker_incarnation;
};
struct close_session {
  request_token token = 0;
  session_id session;
  incarnation_id incarnation;
};
// Every worker reads the adapter from the same absolute path. Answered by answer_done once sources
// may name it, or with the first worker's refusal.
struct load_adapter {
  request_token token = 0;
  std::string name;
  std::string path;
};
struct drop_adapter {
  request_token token = 0;
  std::string name;
};
struct set_log_level {  // of this process and, by the answers to their beats, of the workers
  control::log_threshold level = control::log_threshold::as_configured;
};
struct shut_down {};  // admission stops; the shell ends when the core says stopped

using event = std::variant<worker_message, worker_link_lost, time_passed, record_written,
                            open_session, attach_session, resume_session, renew_session, late_report,
                            close_session, load_adapter, drop_adapter, set_log_level, shut_down>;

}  // namespace moetier::coordinator
