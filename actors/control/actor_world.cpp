#include "actors/control/actor_world.hpp"

#include <chrono>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>

#include "actors/control/envelope.hpp"
#include "actors/process/exit_watchdog.hpp"

namespace moetier::actors {
namespace {

// A stopped peer is seen within a second: both keys, on both sides.
constexpr std::chrono::milliseconds k_io_heartbeat{200};
constexpr std::chrono::milliseconds k_io_timeout{1000};
constexpr std::size_t k_scheduler_threads = 2;
constexpr duration_ns k_shutdown_limit = 3 * k_second;

struct configuration final : caf::actor_system_config {
  configuration() {
    load<caf::io::middleman>();
    add_message_types<caf::id_block::moetier>();
    // Sharing wakes in 17 us where stealing takes 60, and sleeps when there is nothing to do.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", k_scheduler_threads);
    set("middleman.heartbeat-interval", caf::timespan(k_io_heartbeat));
    set("middleman.connection-timeout", caf::timespan(k_io_timeout));
  }
};

std::uint64_t fnv1a(const std::string& text) noexcept {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

}  // namespace

struct actor_world::state {
  configuration config;
  caf::actor_system system{config};
};

expected<std::unique_ptr<actor_world>> actor_world::make(const link_certificates& certificates,
                                                         event_log& log) {
  if (!certificates.certificate.empty() || !certificates.key.empty() ||
      !certificates.authority.empty()) {
    return fail(reason::not_enabled, "TLS on the actor link");
  }
  return std::unique_ptr<actor_world>(new actor_world(log));
}

actor_world::actor_world(event_log& log) : log_(log), state_(std::make_unique<state>()) {}

actor_world::~actor_world() {
  const exit_watchdog watchdog(log_, "actor_system", k_shutdown_limit);
  state_.reset();
}

caf::actor_system& actor_world::system() noexcept { return state_->system; }

std::uint64_t actor_world::node() const noexcept { return fnv1a(to_string(state_->system.node())); }

}  // namespace moetier::actors
