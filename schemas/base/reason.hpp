#pragma once
// The closed list of reasons behind a status. Each has a fixed status and a sentence template with
// {} places; the table in reason.cpp is the only place where such sentences are written. A new
// refusal is a new row there, and a test that provokes it and pins its sentence. Thread: any.

#include <cstdint>
#include <string_view>

#include "schemas/base/status.hpp"

namespace moetier {

enum class reason : std::uint16_t {
  none,
  // start
  config_invalid,      // {key} {given} {allowed}
  config_unknown_key,  // {key} {nearest}
  model_unsupported,   // {field} {value} {supported}
  weight_mismatch,     // {what} {given} {allowed}
  file_unreadable,     // {file} {why}
  file_malformed,      // {file} {why}
  file_unwritable,     // {file} {why}
  activation_invalid,  // {what}
  partition_invalid,   // {experts} {workers} {remedy}
  placement_invalid,   // {what}
  backend_unresolved,  // {what}
  degrade_forbidden,   // {what}
  agreement_failed,    // {what}
  address_in_use,      // {what}
  state_unusable,      // {what}: durable record or its folder
  // request
  invalid_argument,  // {name} {given} {allowed}
  invalid_shape,     // {name} {given} {allowed}
  invalid_dtype,     // {name} {given} {allowed}
  invalid_expert,    // {row} {position} {given} {experts}
  duplicate_expert,  // {row} {expert}
  router_nonfinite,  // {row} {column}
  router_starved,    // {row} {finite} {k}
  token_id_missing,  // {layer}
  token_id_invalid,  // {row} {given} {tokens}
  lora_unsupported,  // {what}
  lora_multichunk,   // {tokens} {rows of a chunk}
  adapter_refused,   // {name} {why}
  unknown_layer,     // {layer} {layers}
  capacity,          // {tokens} {max}
  limit_exceeded,    // {what} {given} {max}
  not_enabled,       // {what}
  sequence,          // {call} {state}
  session_unknown,   // {session}
  session_closed,    // {session}
  lease_lapsed,      // {session}
  deadline_missing,  // {call}
  model_mismatch,    // {given} {served}
  record_mismatch,   // {what of the model} {now} {in the durable record}
  model_changed,     // {session}
  deadline_passed,   // {call} {limit ms}
  // exchange
  worker_late,       // {worker} {layer} {bytes due} {bytes seen} {age us}
  worker_lost,       // {worker} {layer}
  worker_refused,    // {worker} {layer} {what}
  generation_stale,  // {worker} {generation} {held}
  rows_corrupt,      // {worker} {layer}
  no_replica,        // {layer} {expert}
  no_credit,         // {what}
  attach_refused,    // {worker}
  attach_late,       // {worker} {ms}
  step_poisoned,     // {step}
  // service
  coordinator_unreached,  // {what}
  not_ready,              // {what}
  protocol_version,       // {given} {supported}
  struct_unknown,         // {struct} {bytes}
  frame_malformed,        // {what}
  carrier_unavailable,    // {carrier} {what}
  memory_insufficient,    // {what} {needed bytes} {available bytes}
  pages_short,            // {generation} {needed} {empty}
  load_cancelled,         // {generation}
  device_lost,            // {what}
  shutting_down,          // {what}
  certificate_unusable,   // {file} {why}
  denied,                 // {call} {who may}
  internal_error,         // {what}
};

std::string_view reason_name(reason why) noexcept;  // "invalid_expert"
status status_of(reason why) noexcept;
std::string_view template_of(reason why) noexcept;  // fmt template

}  // namespace moetier
