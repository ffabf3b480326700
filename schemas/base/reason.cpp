#include "schemas/base/reason.hpp"

#include <array>

#include "schemas/base/assert.hpp"

namespace moetier {
namespace {

struct row {
  reason why;
  status code;
  std::string_view name;
  std::string_view form;
};

constexpr row k_rows[] = {
    {reason::none, status::ok, "none", "no error"},
    {reason::config_invalid, status::invalid, "config_invalid", "setting {} is {}; allowed: {}"},
    {reason::config_unknown_key, status::invalid, "config_unknown_key",
     "unknown setting {}; did you mean {}?"},
    {reason::model_unsupported, status::unsupported, "model_unsupported",
     "model field {} is {}; supported: {}"},
    {reason::weight_mismatch, status::invalid, "weight_mismatch",
     "weights: {}: found {}, expected {}"},
    {reason::file_unreadable, status::invalid, "file_unreadable", "cannot read {}: {}"},
    {reason::file_malformed, status::invalid, "file_malformed", "{} is malformed: {}"},
    {reason::file_unwritable, status::invalid, "file_unwritable", "cannot write {}: {}"},
    {reason::activation_invalid, status::invalid, "activation_invalid", "activation: {}"},
    {reason::partition_invalid, status::invalid, "partition_invalid",
     "{} experts cannot be divided over {} workers: {}"},
    {reason::placement_invalid, status::invalid, "placement_invalid", "placement: {}"},
    {reason::backend_unresolved, status::unsupported, "backend_unresolved", "no backend: {}"},
    {reason::degrade_forbidden, status::unsupported, "degrade_forbidden",
     "degrading is forbidden: {}"},
    {reason::agreement_failed, status::invalid, "agreement_failed", "workers do not agree: {}"},
    {reason::address_in_use, status::unavailable, "address_in_use", "the {} address is in use"},
    {reason::state_unusable, status::internal, "state_unusable", "durable state: {}"},
    {reason::invalid_argument, status::invalid, "invalid_argument", "{} is {}; allowed: {}"},
    {reason::invalid_shape, status::invalid, "invalid_shape", "{} has shape {}; expected {}"},
    {reason::invalid_dtype, status::invalid, "invalid_dtype", "{} has dtype {}; allowed: {}"},
    {reason::invalid_expert, status::invalid, "invalid_expert",
     "row {} position {} names expert {}; allowed: -1 (none) or 0 to {}"},
    {reason::duplicate_expert, status::invalid, "duplicate_expert", "row {} names expert {} twice"},
    {reason::router_nonfinite, status::invalid, "router_nonfinite",
     "row {} column {} of the router input is not finite"},
    {reason::router_starved, status::invalid, "router_starved",
     "row {} has {} selectable experts; {} are needed"},
    {reason::token_id_missing, status::invalid, "token_id_missing",
     "layer {} chooses experts by token id; the call has no token_ids"},
    {reason::token_id_invalid, status::invalid, "token_id_invalid",
     "row {} has token id {}; allowed: 0 to {}"},
    {reason::lora_unsupported, status::unsupported, "lora_unsupported", "adapters: {}"},
    {reason::lora_multichunk, status::invalid, "lora_multichunk",
     "{} tokens with adapters need one chunk; a chunk has {} rows"},
    {reason::adapter_refused, status::invalid, "adapter_refused", "adapter {} is not loaded: {}"},
    {reason::unknown_layer, status::invalid, "unknown_layer",
     "layer {} is not served; MoE layers: {}"},
    {reason::capacity, status::invalid, "capacity", "{} tokens exceed the session's limit of {}"},
    {reason::limit_exceeded, status::invalid, "limit_exceeded", "{} is {}; at most {}"},
    {reason::not_enabled, status::unsupported, "not_enabled", "{} is not enabled"},
    {reason::sequence, status::bad_state, "sequence", "{} is not allowed here: {}"},
    {reason::session_unknown, status::session_lost, "session_unknown", "session {} is not known"},
    {reason::session_closed, status::cancelled, "session_closed", "session {} is closed"},
    {reason::lease_lapsed, status::session_lost, "lease_lapsed",
     "the lease of session {} has lapsed"},
    {reason::deadline_missing, status::invalid, "deadline_missing", "{} has deadlineNs 0; allowed: 1 and more"},
    {reason::model_changed, status::model_mismatch, "model_changed",
     "the tier serves another model than the one session {} was opened for"},
    {reason::deadline_passed, status::timeout, "deadline_passed", "{} did not end within {} ms"},
    {reason::model_mismatch, status::model_mismatch, "model_mismatch",
     "the model's fingerprint is {}; the tier serves {}"},
    {reason::record_mismatch, status::model_mismatch, "record_mismatch",
     "the model's {} are of digest {}; the durable record was made with {}"},
    {reason::worker_late, status::timeout, "worker_late",
     "worker {} is late in layer {}: {} bytes due, {} seen, {} us old"},
    {reason::worker_lost, status::timeout, "worker_lost", "worker {} was lost in layer {}"},
    {reason::worker_refused, status::timeout, "worker_refused",
     "worker {} refused rows of layer {}: {}"},
    {reason::generation_stale, status::stale_generation, "generation_stale",
     "worker {} does not hold generation {}; it holds {}"},
    {reason::rows_corrupt, status::corrupt, "rows_corrupt",
     "rows from worker {} in layer {} failed their check"},
    {reason::no_replica, status::unavailable, "no_replica",
     "layer {} expert {} has no live replica"},
    {reason::no_credit, status::overloaded, "no_credit", "no credit: {}"},
    {reason::attach_refused, status::unavailable, "attach_refused",
     "worker {} cannot attach the source"},
    {reason::attach_late, status::timeout, "attach_late",
     "worker {} did not attach the source within {} ms"},
    {reason::step_poisoned, status::skipped, "step_poisoned",
     "an earlier call of step {} failed; replay the step"},
    {reason::coordinator_unreached, status::unavailable, "coordinator_unreached",
     "the coordinator is not reached: {}"},
    {reason::not_ready, status::unavailable, "not_ready", "the tier is not ready: {}"},
    {reason::protocol_version, status::version, "protocol_version",
     "protocol version {} is not supported; supported: {}"},
    {reason::struct_unknown, status::version, "struct_unknown",
     "{} asks for something beyond its first {} bytes, which this library does not know"},
    {reason::frame_malformed, status::invalid, "frame_malformed", "malformed message: {}"},
    {reason::carrier_unavailable, status::unsupported, "carrier_unavailable",
     "carrier {} cannot run: {}"},
    {reason::memory_insufficient, status::no_memory, "memory_insufficient",
     "{} needs {} bytes; {} are available"},
    {reason::pages_short, status::overloaded, "pages_short",
     "generation {} needs {} empty pages; {} are empty"},
    {reason::load_cancelled, status::cancelled, "load_cancelled",
     "loading generation {} was cancelled"},
    {reason::device_lost, status::device, "device_lost", "the device failed: {}"},
    {reason::shutting_down, status::unavailable, "shutting_down", "{} is shutting down"},
    {reason::certificate_unusable, status::invalid, "certificate_unusable",
     "certificate file {}: {}"},
    {reason::denied, status::denied, "denied", "{} is denied: {}"},
    {reason::internal_error, status::internal, "internal_error", "internal error: {}"},
};

constexpr const row& row_of(reason why) noexcept {
  for (const row& r : k_rows) {
    if (r.why == why) return r;
  }
  return k_rows[std::size(k_rows) - 1];
}

}  // namespace

std::string_view reason_name(reason why) noexcept { return row_of(why).name; }
status status_of(reason why) noexcept { return row_of(why).code; }
std::string_view template_of(reason why) noexcept { return row_of(why).form; }

}  // namespace moetier
