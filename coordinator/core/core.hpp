#pragma once
// The coordinator's pure core: membership, the first plan and its two-phase commit, death and
// return of workers, sessions with leases, routing snapshots. step(event, now) changes the state
// and returns effects; no clock, socket, thread, log or random source is inside, so the actor shell
// and the simulator drive the very same code.
//
// Rules it keeps (assertions, always on): it alone issues epochs and generations; a decision is
// durable before COMMIT is sent; COMMIT only after all workers of the plan are PREPARED with equal
// checksums per expert; a snapshot is published only after its generation is COMMITTED by all its
// live workers; a worker's answer counts only if its incarnation is the one in service; one epoch
// commit per change of the set of live workers. Thread: owner (the coordinator actor, or the
// simulator).

#include <memory>
#include <optional>

#include "coordinator/core/effect.hpp"
#include "coordinator/core/event.hpp"
#include "coordinator/core/options.hpp"
#include "coordinator/core/tier_view.hpp"

namespace moetier::coordinator {

class core final {
 public:
  // `stored` is what the record store holds; the first effects write epoch + 1.
  core(core_options options, std::optional<record> stored);
  ~core();
  core(const core&) = delete;
  core& operator=(const core&) = delete;

  effects start(time_ns now);
  effects step(const event& what, time_ns now);

  // For status pages, RPC and tests: an immutable picture of the state at `now`.
  tier_view view(time_ns now) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace moetier::coordinator
