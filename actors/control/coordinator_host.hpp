#pragma once
// The coordinator's actor, from outside: owns it and its core, publishes it for workers and is the
// control_port of RPC server, gateway and HTTP. Events of this process reach the actor as C++
// values, which no other process can send; workers reach it by envelopes alone.
//
// Thread: owner; post, view: any.

#include <memory>

#include "actors/config/endpoint.hpp"
#include "actors/control/actor_world.hpp"
#include "actors/control/coordinator_shell.hpp"
#include "coordinator/control_port.hpp"

namespace moetier::actors {

class coordinator_host final : public coordinator::control_port {
 public:
  // The core's options name this process's actor node. The actor does nothing until start().
  coordinator_host(actor_world& world, coordinator::core_options options,
                   std::optional<coordinator::record> stored, coordinator_world shell_world,
                   event_log& log);
  // Ends the actor; whoever posts later is not heard.
  ~coordinator_host() override;

  // Before the first post() and publish(). Requires: `sink` outlives this object.
  void start(coordinator::control_sink& sink);
  // Lets workers in; answers the real endpoint. reason::address_in_use.
  expected<config::endpoint> publish(const config::endpoint& listen);

  void post(coordinator::event what) override;
  std::shared_ptr<const coordinator::tier_view> view() const override;
  expected<client::layer_router_ptr> router(std::size_t moe_index) override;
  std::uint64_t backlog() const noexcept override { return mailbox_depth(); }
  duration_ns view_age() const;  // about half a heartbeat, unless the actor hangs
  // Events posted and not yet handled: CAF's mailboxes are unbounded and unmeasured.
  std::uint64_t mailbox_depth() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace moetier::actors
