#pragma once
// A member: one configured worker name, the process that fills it now, and how far that process has
// come. Private to coordinator/core. Thread: owner.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/event.hpp"
#include "schemas/base/time.hpp"
#include "schemas/resolution/environment.hpp"

namespace moetier::coordinator {

// The way of a process into service, in order. Only `serving` is routed to.
enum class member_stage : std::uint8_t {
  lost,        // no usable process; its place waits
  joined,      // welcomed; there is no plan for it yet
  preparing,   // PREPARE is sent
  verified,    // PREPARED, and its checksums are right
  admitting,   // the epoch that takes it in is being made durable
  committing,  // COMMIT is sent, and every known source is being attached
  serving      // COMMITTED
};

struct member {
  std::string name;
  control::hello told;                             // by the process in place, or by the last one
  std::shared_ptr<const std::string> environment;  // its document, out of `told`
  std::shared_ptr<const resolution::environment> seen;  // what that says
  // its place; all zero before the first plan
  worker_id id;
  std::uint32_t first_slot = 0;
  std::uint32_t slots = 0;
  // the process
  std::optional<link_number> link;
  member_stage at = member_stage::lost;
  bool leaving = false;
  bool stuck = false;      // its last beat showed no progress, so it counts as missed
  bool suspected = false;  // sources are told to avoid it
  bool committed = false;  // answered COMMITTED for the plan in force
  epoch_number asked;      // of the first PREPARE to this process: what older answers lack
  epoch_number admission;  // the epoch that takes it in
  std::vector<std::uint64_t> checksums;          // of its PREPARED, by (layer index, local slot)
  std::uint64_t shared_digest = 0;               // of its PREPARED
  std::map<source_id, incarnation_id> attached;  // sources it has confirmed
  std::map<std::uint32_t, bool> adapters;        // by id: loaded, or refused
  // clocks
  time_ns heard_at = 0;   // the last beat that counted
  time_ns probed_at = 0;  // the last probe, sent because a source found it late
  time_ns since = 0;      // when it came to `at`
  time_ns resend_at = 0;
  duration_ns resend_after = 0;
  // its beats and load
  std::uint64_t sequence = 0;
  std::uint64_t tick = 0;
  std::uint64_t rows_total = 0;
  std::uint64_t calls_total = 0;
  std::vector<std::uint64_t> counts;  // by (layer index, local slot)

  // Belongs to the group that epochs name: routed to, or about to be.
  bool in_group() const noexcept {
    return at == member_stage::serving || at == member_stage::committing ||
           at == member_stage::admitting;
  }
  // Without a link only while the coordinator waits for its return after a stop of its own.
  bool live() const noexcept { return at == member_stage::serving && !leaving; }
  bool takes_sources() const noexcept {
    return at == member_stage::serving || at == member_stage::committing;
  }
  bool holds_adapter(std::uint32_t adapter) const {
    const auto found = adapters.find(adapter);
    return found != adapters.end() && found->second;
  }
  bool has_attached(source_id source, incarnation_id incarnation) const {
    const auto found = attached.find(source);
    return found != attached.end() && found->second == incarnation;
  }
};

}  // namespace moetier::coordinator
