#pragma once
// Where the RPC server, the gateway and HTTP meet the coordinator's core, which runs on another
// thread. Requests go in as core events; answers and news come out through a control_sink. The
// actor shell implements control_port, the RPC server implements control_sink; tests put a plain
// core behind the same two interfaces.

#include <cstdint>
#include <memory>

#include "coordinator/core/effect.hpp"
#include "coordinator/core/event.hpp"
#include "coordinator/core/tier_view.hpp"
#include "transport/client/source/layer_router.hpp"

namespace moetier::coordinator {

class control_sink {
 public:
  virtual ~control_sink() = default;
  // Thread: the core's owner calls; implementations hand over and return at once.
  virtual void on_answer(const answer_session& answer) = 0;
  virtual void on_answer(const answer_done& answer) = 0;
  virtual void on_snapshot(const transport::snapshot_ptr& snapshot) = 0;
  // (optional) Else sources learn of a stuck worker by the snapshot that masks it.
  virtual void on_suspicion(const transport::suspicion_ptr&) {}
  virtual void on_session_ended(const session_ended& ended) = 0;
};

class control_port {
 public:
  virtual ~control_port() = default;
  // Thread: any. Never blocks. Events with a token are answered exactly once through the sink.
  virtual void post(event what) = 0;
  // Thread: any. Events posted and not yet handled.
  virtual std::uint64_t backlog() const noexcept { return 0; }
  // Thread: any. At most a heartbeat interval old; the snapshot inside is exact.
  virtual std::shared_ptr<const tier_view> view() const = 0;
  // Thread: any. A layer's router out of the checkpoint; blocks while it is read, once.
  virtual expected<client::layer_router_ptr> router(std::size_t) {
    return fail(reason::not_enabled, "gate tier (this coordinator reads no routers)");
  }
};

}  // namespace moetier::coordinator
