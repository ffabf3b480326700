#pragma once
// A picture of the tier for people and tools: status, placement, sessions, load. Made by the core,
// read by RPC, HTTP and tests; it decides nothing. Thread: any (a value).

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/core/event.hpp"
#include "coordinator/core/log_event.hpp"
#include "schemas/base/deadline_class.hpp"
#include "schemas/base/histogram.hpp"
#include "coordinator/core/load_window.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/base/time.hpp"
#include "schemas/resolution/report.hpp"
#include "transport/snapshot/routing_snapshot.hpp"

namespace moetier::coordinator {

inline constexpr std::size_t k_events_shown = 64;

enum class worker_state : std::uint8_t {
  joining = 0,
  preparing = 1,
  serving = 2,
  leaving = 3,
  lost = 4
};
std::string_view worker_state_name(worker_state s) noexcept;

// Why a worker was left out.
enum class loss_cause : std::uint8_t {
  link_closed = 0,  // its process ended, or the connection broke
  silent = 1,       // no beat came
  stuck = 2,        // beats came and showed no progress
  device = 3,       // its device failed
  refused = 4       // quarantined: what it holds or says is not the tier's
};
inline constexpr std::array k_loss_causes{loss_cause::link_closed, loss_cause::silent,
                                          loss_cause::stuck, loss_cause::device,
                                          loss_cause::refused};
std::string_view loss_cause_name(loss_cause c) noexcept;

// A worker that was in service and went without saying so. Times are the coordinator's own.
struct loss_view {
  std::uint64_t number = 0;  // rises by one; readers of the view keep the last one they counted
  std::string worker;
  loss_cause cause = loss_cause::link_closed;
  duration_ns detection = 0;  // from its last good beat to the decision to leave it out
  duration_ns recovery = 0;   // from that beat until sources are told to do without; 0 = not yet
};

struct worker_view {
  worker_id worker;
  std::string name;
  worker_state state = worker_state::joining;
  bool suspected = false;  // sources are told to avoid it
  incarnation_id incarnation;
  std::uint32_t first_slot = 0;
  std::uint32_t slots = 0;
  std::string backend;
  std::shared_ptr<const std::string> environment;  // its document; null before it said hello
  duration_ns heartbeat_age = 0;
  std::uint64_t rows_total = 0;
  std::uint64_t calls_total = 0;
  std::vector<std::vector<std::uint64_t>> counts;  // [layer index][local slot], current generation
};

struct session_view {
  session_id session;
  source_id source;
  std::string tenant;
  bool thin = false;
  bool attached = false;
  session_use use;  // as of its last renewal
  duration_ns age = 0;
  duration_ns lease_left = 0;
  deadline_class urgency = deadline_class::decode;
  std::uint64_t tokens_per_second = 0;  // its part of its tenant's rate; 0 = no limit
};

// Something that happened to the tier: what the log's line of it says.
struct event_view {
  log_event::level severity = log_event::level::info;
  std::string event;   // "worker_lost"
  std::string detail;  // one sentence, for people
  duration_ns age = 0;
};

struct adapter_view {
  std::uint32_t adapter = 0;  // id that rows name
  std::string name;
  std::string path;
  bool listed = false;               // sources may name it
  std::vector<std::string> workers;  // that hold it
  std::string problem;               // of the worker that refused it last
};

struct tier_view {
  epoch_number epoch;
  generation_number generation;  // committed; 0 = none
  plan_hash plan;
  shares_revision revision;
  bool ready = false;
  std::vector<std::string>
      not_ready_reasons;  // "waiting for 1 of 3 workers", "layer 2 expert 7 has no live replica"
  std::vector<worker_view> workers;
  std::vector<session_view> sessions;
  bool runs_adapters = false;  // moe.lora of the plan
  std::vector<adapter_view> adapters;
  std::uint64_t unreplicated_experts = 0;  // (layer, expert) pairs with exactly one live replica
  std::uint64_t lost_experts = 0;          // (layer, expert) pairs without a live replica
  struct refusals {                        // of sessions, since the start
    std::uint64_t denied = 0;              // rights of a tenant
    std::uint64_t overloaded = 0;          // limits of the tier or of a tenant
    std::uint64_t memory = 0;              // the bill of a session's banks
  } refused;
  std::uint64_t stale_commands_refused = 0;  // messages of older epochs or incarnations
  std::uint64_t beats_without_progress = 0;  // counted as missed
  std::uint64_t late_reports = 0;            // sources' TIMEOUTs
  std::uint64_t suspicions = 0;              // workers that became suspect
  bool suspects_itself = false;              // most workers fell silent together
  std::vector<loss_view> losses;             // the newest few, oldest first
  // Processes that went without saying so since the start, in service or on their way; by cause.
  std::array<std::uint64_t, k_loss_causes.size()> gone_by_cause{};
  histogram_reading detections;  // of all losses, nanoseconds
  histogram_reading recoveries;
  std::vector<event_view> events;              // the newest k_events_shown, newest first
  std::shared_ptr<const window_loads> window;  // the last that ended; null = none yet
  transport::snapshot_ptr snapshot;            // newest published; null = none
  std::shared_ptr<const resolution::resolution_report> resolved;  // null before there is one
};

}  // namespace moetier::coordinator
