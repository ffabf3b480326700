#pragma once
// The worker's pure control core: joins, obeys plans in two phases, keeps the highest epoch it has
// seen and refuses lower ones, keeps the attach table, beats. It keeps serving a committed
// generation while the coordinator is away. No clock, socket or thread inside; the actor shell and
// the simulator drive the same code. Thread: owner (the worker actor, or the simulator).

#include <memory>

#include "schemas/base/time.hpp"
#include "workers/core/event.hpp"

namespace moetier::workers {

struct core_options {
  std::string name;
  incarnation_id incarnation;
  std::uint64_t node = 0;
  std::uint64_t model_fingerprint = 0;
  std::uint64_t checkpoint_digest = 0;
  std::uint32_t slots = 0;                // per layer; 0 = as the partition gives
  std::vector<std::uint8_t> environment;  // document, as hello carries it
  std::string carrier;
  std::vector<std::uint8_t> address;
  duration_ns heartbeat_interval = 100 * k_millisecond;
  duration_ns heartbeat_timeout = 500 * k_millisecond;
  duration_ns drain_limit = 4 * k_second;
};

struct worker_summary {  // for HTTP and metrics
  worker_id worker;
  epoch_number epoch;
  generation_number generation;
  bool joined = false;
  bool leased = false;  // the coordinator answered a beat that is not older than its patience
  bool serving = false;
  bool draining = false;
  std::uint32_t sources = 0;
  std::uint64_t stale_commands_refused = 0;
};

class core final {
 public:
  explicit core(core_options options);
  ~core();
  core(const core&) = delete;
  core& operator=(const core&) = delete;

  effects step(const event& what, time_ns now);
  worker_summary summary() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace moetier::workers
