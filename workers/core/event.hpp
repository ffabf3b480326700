#pragma once
// Everything that can happen to a worker's control core, and what it asks its shell to do, as
// values. The shell (the actor, or the simulator) owns link, loader thread, engine and clock.
// Thread: any (values).

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "eplb/placement.hpp"
#include "schemas/base/error.hpp"
#include "schemas/control/messages.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::workers {

// --- events ---
struct link_up {};  // a fresh link to a coordinator: say hello
struct link_lost {};
struct coordinator_message {
  control::message body;
};
struct time_passed {};  // at least every heartbeat interval
struct plan_loaded {
  generation_number generation;
  plan_hash plan;
  std::vector<std::uint64_t> checksums;
  std::uint64_t shared_digest = 0;  // of the shared experts' checksums; 0 = none
};
struct plan_load_failed {
  generation_number generation;
  plan_hash plan;
  error why;
};
struct source_attach_done {
  source_id source;
  incarnation_id incarnation;
  bool accepted = true;
  std::string text;
  bool gone = false;  // was attached, and no return can reach it any more
};
struct adapter_load_done {
  control::held_adapter adapter;
  bool loaded = true;
  std::string text;  // when not
};
struct engine_progress {  // from the engine, several times a heartbeat
  std::uint64_t tick = 0;
  std::uint64_t tickets_ended = 0;
  std::uint64_t oldest_batch_ns = 0;
  std::uint64_t rows_total = 0;
  std::uint64_t calls_total = 0;
  generation_number counted_generation;
  std::vector<std::uint64_t> counts;  // by (layer index, local slot); empty = unchanged
  control::device_state device = control::device_state::none;
};
struct pages_released {
  generation_number generation;
};
struct shut_down {           // SIGTERM, or the device failed: say leaving, drain, stop
  bool device_lost = false;  // said first
};
struct engine_drained {};  // after drain_engine: nothing is in flight any more

using event = std::variant<link_up, link_lost, coordinator_message, time_passed, plan_loaded,
                           plan_load_failed, source_attach_done, adapter_load_done, engine_progress,
                           pages_released, shut_down, engine_drained>;

// --- effects ---
struct send {
  control::message body;
};
struct drop_link {};
struct load_plan {
  generation_number generation;
  plan_hash plan;
  eplb::placement placement;
  worker_id self;
  std::shared_ptr<const resolution::resolution_report> resolved;  // what every worker runs
  std::uint32_t shared_experts = 0;
};
struct cancel_load {  // stop loading it, or free its pages if it is loaded; it is not in service
  generation_number generation;
  plan_hash plan;
};
struct serve_generation {
  generation_number generation;
  plan_hash plan;
  worker_id self;
  std::uint32_t first_slot = 0;
  std::uint64_t resolution = 0;  // id; rows of another are refused
};
struct release_pages {
  generation_number older_than;
};  // once no batch of them is in flight
struct attach_source {
  control::source_attachment source;
};
struct detach_source {
  source_id source;
  incarnation_id incarnation;
};
struct load_adapter {  // read it, then let the engine have it
  control::held_adapter adapter;
};
struct drop_adapter {
  std::uint32_t adapter = 0;
};
struct set_log_level {  // somebody set it while the tier runs
  control::log_threshold level = control::log_threshold::as_configured;
};
struct drain_engine {};  // finish what is in flight, take nothing new
struct log_event {
  enum class level : std::uint8_t { debug, info, warn, error } severity = level::info;
  std::string event;
  std::string detail;
};
struct stopped {
  bool failed = false;
  std::string why;
};

using effect = std::variant<send, drop_link, load_plan, cancel_load, serve_generation,
                            release_pages, attach_source, detach_source, load_adapter, drop_adapter,
                            set_log_level, drain_engine, log_event, stopped>;
using effects = std::vector<effect>;

}  // namespace moetier::workers
