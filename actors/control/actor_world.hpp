#pragma once
// This process's actor system: two scheduler threads, CAF's own I/O thread, and heartbeats of the
// I/O threads set the same on both sides of every link (set on one side only they cut a healthy
// one). Made by a role before its actor and destroyed after it; the only owner of CAF's threads.
// Its end is watched: CAF may hang there after a broken connection, and then the process ends
// without it. Thread: owner.

#include <cstdint>
#include <memory>
#include <string>

#include "actors/log/event_log.hpp"
#include "schemas/base/error.hpp"
#include "transport/tls/credential.hpp"

namespace caf {
class actor_system;
}

namespace moetier::actors {

class actor_world final {
 public:
  // `own`: who this process is between workers and coordinator; null = in the clear. With it the
  // process must demand TLS 1.3 (transport/tls/process_policy.hpp).
  static expected<std::unique_ptr<actor_world>> make(const tls::credential_ptr& own,
                                                     event_log& log);
  ~actor_world();
  // What the process ends with if CAF hangs at the end; 0 unless told.
  void set_exit_code(int code) noexcept { exit_code_ = code; }
  actor_world(const actor_world&) = delete;
  actor_world& operator=(const actor_world&) = delete;

  caf::actor_system& system() noexcept;
  // A hash of CAF's node id. Two processes of equal ids cannot talk: containers that share a host
  // name space and both run as pid 1 have that.
  std::uint64_t node() const noexcept;

 private:
  struct state;
  actor_world(event_log& log, std::unique_ptr<state> made);
  event_log& log_;
  int exit_code_ = 0;
  std::unique_ptr<state> state_;
};

}  // namespace moetier::actors
