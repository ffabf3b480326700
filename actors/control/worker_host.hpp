#pragma once
// The expert_worker actor, from outside: owns it and its core, keeps the link to the coordinator up
// for as long as it lives (asynchronous connects with a limit, at once after a seen close, later
// after a silence) and takes events from the loader's and the engine's threads.
//
// Thread: owner; post, summary: any.

#include <memory>

#include "actors/config/endpoint.hpp"
#include "actors/control/actor_world.hpp"
#include "actors/control/worker_shell.hpp"

namespace moetier::actors {

class worker_host final {
 public:
  // The core's options name this process's actor node; `seed` spreads reconnects. The actor does
  // nothing until start(), when the machinery is whole.
  worker_host(actor_world& world, const config::endpoint& coordinator,
              workers::core_options options, std::uint64_t seed, worker_machinery& machinery,
              event_log& log);
  ~worker_host();
  worker_host(const worker_host&) = delete;
  worker_host& operator=(const worker_host&) = delete;

  void start();
  // Ends the actor: no order goes out any more, and what is posted later is not heard. Idempotent.
  void stop();
  void post(workers::event what);
  workers::worker_summary summary() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace moetier::actors
