#pragma once
// What the coordinator's core is told once at its start. Plain values; the shells fill them from
// configuration. Thread: any.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/tenants.hpp"
#include "schemas/base/time.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/routing_tables.hpp"
#include "schemas/resolution/words.hpp"

namespace moetier::coordinator {

struct core_options {
  model_description model;                   // with the operator's routing overrides
  std::uint64_t checkpoint_fingerprint = 0;  // of the model as the files have it: the workers'
  std::uint64_t checkpoint_digest = 0;       // of the coordinator's own files; 0 = it has none
  std::uint64_t routing_digest = 0;    // of routers, biases and tables, as the record keeps it
  routing_tables_ptr tables;           // null = routers have nothing beside their matrices
  std::string backend_force = "auto";  // backend.force
  std::string communication = "auto";  // transport.carrier
  bool allow_degradation = true;
  resolution::answer_mode answers =
      resolution::answer_mode::partial;  // what a session gets by default
  std::optional<quant_kind> quantise;    // unquantised experts are held in this format
  bool hold_shared_experts = true;       // where the model has some that a session may ask for
  bool lora = false;                     // adapters are to be served
  std::uint32_t workers_expected = 1;    // the first placement waits for this many
  std::string placement_file_text;       // eplb::placement_from_json; empty = default placement
  std::string placement_file_name;       // for error texts
  bool ends_when_infeasible = false;     // rather than wait for other workers
  std::uint64_t node = 0;  // own actor node identity; a worker with the same is refused
  duration_ns heartbeat_interval = 100 * k_millisecond;
  duration_ns heartbeat_timeout = 500 * k_millisecond;
  // Longer than a worker's pause before it connects anew to a coordinator that did not answer.
  duration_ns rejoin_limit = 3 * k_second;
  duration_ns lease = k_second;
  duration_ns prepare_limit = 3600 * k_second;  // a worker's loading of a plan
  duration_ns attach_limit = 2 * k_second;
  duration_ns adapter_limit = 120 * k_second;  // reading an adapter on all workers
  std::uint32_t sessions_max = 64;
  std::uint32_t sources_max = 64;
  std::uint32_t tokens_max = 4096;  // per micro-batch
  // Told to sessions that name none: of a decode call, a prefill call, and a step, which is also a
  // batch call's.
  duration_ns call_deadline = k_second;
  duration_ns prefill_deadline = 2 * k_second;
  duration_ns step_deadline = 60 * k_second;
  tenant_list tenants = open_tenants();
  std::vector<std::string> model_names;       // what tenants' lists call the model
  std::uint64_t bank_bytes_max = 4ULL << 30;  // of one session's banks at one worker
};

}  // namespace moetier::coordinator
