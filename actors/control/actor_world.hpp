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

namespace caf {
class actor_system;
}

namespace moetier::actors {

// Files of the zone of workers and coordinator; all empty = loopback only.
struct link_certificates {
  std::string certificate{};
  std::string key{};
  std::string authority{};
};

class actor_world final {
 public:
  // reason::not_enabled with certificates, until the link speaks TLS.
  static expected<std::unique_ptr<actor_world>> make(const link_certificates& certificates,
                                                     event_log& log);
  ~actor_world();
  actor_world(const actor_world&) = delete;
  actor_world& operator=(const actor_world&) = delete;

  caf::actor_system& system() noexcept;
  // A hash of CAF's node id. Two processes of equal ids cannot talk: containers that share a host
  // name space and both run as pid 1 have that.
  std::uint64_t node() const noexcept;

 private:
  struct state;
  explicit actor_world(event_log& log);
  event_log& log_;
  std::unique_ptr<state> state_;
};

}  // namespace moetier::actors
