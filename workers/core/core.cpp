#include "workers/core/core.hpp"

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "workers/core/state.hpp"

namespace moetier::workers {

core::core(core_options options) : state_(std::make_unique<state>(std::move(options))) {}
core::~core() = default;

effects core::step(const event& what, time_ns now) {
  state& s = *state_;
  if (s.ended) return {};
  std::visit([&](const auto& e) { s.on(e, now); }, what);
  return std::exchange(s.out, {});
}

worker_summary core::summary() const {
  const state& s = *state_;
  return {.worker = s.self,
          .epoch = s.highest,
          .generation = s.serving ? s.serving->generation : generation_number(),
          .joined = s.joined,
          .leased = s.joined && s.leased,
          .serving = s.serving.has_value(),
          .draining = s.leaving,
          .sources = static_cast<std::uint32_t>(s.sources.size()),
          .stale_commands_refused = s.stale_refused};
}

// --- link ---

void core::state::on(const link_up&, time_ns now) {
  linked = true;
  joined = false;
  heard_at = now;
  if (!leaving) say_hello(now);  // who leaves does not join again
}

// A committed generation is served on: rows are judged by generation, not by who coordinates.
void core::state::on(const link_lost&, time_ns) {
  linked = false;
  joined = false;
}

void core::state::on(const coordinator_message& e, time_ns now) {
  if (!linked) return;  // a late word from a link that is gone
  heard_at = now;
  std::visit([&](const auto& m) { obey(m); }, e.body);
}

void core::state::say_hello(time_ns now) {
  hello_at = now;
  control::hello m;
  m.name = options.name;
  m.incarnation = options.incarnation;
  m.node = options.node;
  m.highest_epoch = highest;
  m.model_fingerprint = options.model_fingerprint;
  m.checkpoint_digest = options.checkpoint_digest;
  m.slots = options.slots;
  m.environment = options.environment;
  if (serving) m.resolution = serving->resolution;
  m.carrier = options.carrier;
  m.address = options.address;
  m.heartbeat_interval_ns = options.heartbeat_interval;
  m.heartbeat_timeout_ns = options.heartbeat_timeout;
  m.held = held();
  if (serving) m.held_checksums = serving->checksums;
  if (serving) m.held_shared_digest = serving->shared_digest;
  m.sources = confirmed_sources();
  m.adapters = confirmed_adapters();
  say(std::move(m));
}

void core::state::obey(const control::welcome& m) {
  if (!is_own(m.incarnation) || !obeys(m.epoch, {})) return;
  joined = true;
  leased = true;
  lease_from = hello_at;
  beats_sent.clear();
  self = m.worker;
}

void core::state::obey(const control::refused& m) {
  if (!is_own(m.incarnation)) return;
  log(log_event::level::error, "refused_by_coordinator", m.text);
  joined = false;
  emit(drop_link{});
  // Wrong weights do not mend by asking again; anything else may, after the link's back-off.
  if (m.cause == control::refused::why::load_failed) stop(true, m.text);
}

bool core::state::is_own(incarnation_id incarnation) {
  if (incarnation == options.incarnation) return true;
  ++stale_refused;  // R2: meant for an earlier process of this name
  return false;
}

// R1. The caller has checked the incarnation, where the command carries one.
bool core::state::obeys(epoch_number epoch, generation_number generation) {
  if (epoch < highest) {
    ++stale_refused;
    refuse(control::refused::why::stale_epoch, generation,
           fmt::format("epoch {} is older than {}", epoch.value, highest.value));
    return false;
  }
  highest = epoch;
  return true;
}

// --- the end ---

void core::state::on(const shut_down& e, time_ns now) {
  if (leaving) return;
  if (e.device_lost && joined) {
    progress.device = control::device_state::lost;
    say_beat(now);
  }
  leaving = true;
  leaving_at = now;
  say(control::leaving{options.incarnation});
  if (!joined || !serving) {  // nobody routes to us: nothing to wait for
    drain_asked = true;
    emit(drain_engine{});
  }
}

void core::state::on(const engine_drained&, time_ns) {
  if (leaving && drain_asked) stop(false, "drained");
}

void core::state::stop(bool failed, std::string why) {
  MOETIER_ASSERT(!ended);
  ended = true;
  leased = false;
  emit(stopped{failed, std::move(why)});
}

// --- words to the shell ---

void core::state::refuse(control::refused::why cause, generation_number generation,
                         std::string text) {
  say(control::refused{cause, highest, generation, options.incarnation, std::move(text)});
}

void core::state::log(log_event::level severity, std::string name, std::string detail) {
  emit(log_event{severity, std::move(name), std::move(detail)});
}

}  // namespace moetier::workers
