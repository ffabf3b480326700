#pragma once
// A picture of the tier for people and tools: status, placement, sessions, load. Made by the core,
// read by RPC, HTTP and tests; it decides nothing. Thread: any (a value).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/core/load_window.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/base/time.hpp"
#include "schemas/resolution/report.hpp"
#include "transport/snapshot/routing_snapshot.hpp"

namespace moetier::coordinator {

enum class worker_state : std::uint8_t {
  joining = 0,
  preparing = 1,
  serving = 2,
  leaving = 3,
  lost = 4
};
std::string_view worker_state_name(worker_state s) noexcept;

struct worker_view {
  worker_id worker;
  std::string name;
  worker_state state = worker_state::joining;
  incarnation_id incarnation;
  std::uint32_t first_slot = 0;
  std::uint32_t slots = 0;
  std::string backend;
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
  duration_ns age = 0;
  duration_ns lease_left = 0;
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
  std::uint64_t unreplicated_experts = 0;    // (layer, expert) pairs with exactly one live replica
  std::uint64_t lost_experts = 0;            // (layer, expert) pairs without a live replica
  std::uint64_t stale_commands_refused = 0;  // messages of older epochs or incarnations
  std::shared_ptr<const window_loads> window;  // the last that ended; null = none yet
  transport::snapshot_ptr snapshot;            // newest published; null = none
  std::shared_ptr<const resolution::resolution_report> resolved;  // null before there is one
};

}  // namespace moetier::coordinator
