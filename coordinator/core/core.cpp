#include "coordinator/core/core.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::coordinator {
namespace {

// A gap of this many heartbeat intervals between two steps is a stop of this process.
constexpr std::uint64_t k_stop_intervals = 2;

// What still needs an answer once the core has ended.
template <class Event>
constexpr bool k_wants_grant =
    std::is_same_v<Event, open_session> || std::is_same_v<Event, resume_session>;
template <class Event>
constexpr bool k_wants_done =
    std::is_same_v<Event, attach_session> || std::is_same_v<Event, close_session> ||
    std::is_same_v<Event, load_adapter> || std::is_same_v<Event, drop_adapter>;

}  // namespace

core::core(core_options options, std::optional<record> stored)
    : state_(std::make_unique<state>(std::move(options), std::move(stored))) {}
core::~core() = default;

effects core::start(time_ns now) {
  state_->start(now);
  return std::exchange(state_->out, {});
}

effects core::step(const event& what, time_ns now) {
  state& s = *state_;
  // Something happens at least every heartbeat interval: after such a gap this process was stopped.
  const duration_ns away = now - std::exchange(s.step_time, now);
  if (!s.ended && away > k_stop_intervals * s.options.heartbeat_interval) s.wake(now, away);
  std::visit(
      [&](const auto& e) {
        using kind = std::decay_t<decltype(e)>;
        if (!s.ended) {
          s.on(e, now);
          s.settle(now);
        } else if constexpr (k_wants_grant<kind>) {
          s.answer(e.token, fail(reason::shutting_down, "the coordinator"));
        } else if constexpr (k_wants_done<kind>) {
          s.answer_plain(e.token, fail(reason::shutting_down, "the coordinator"));
        }
      },
      what);
  return std::exchange(s.out, {});
}

// R12. Nothing reaches a worker before the new epoch is durable.
void core::state::start(time_ns now) {
  step_time = now;
  if (options.tables == nullptr) options.tables = transport::plain_tables(options.model);
  if (options.checkpoint_fingerprint == 0)
    options.checkpoint_fingerprint = options.model.fingerprint;
  for (std::uint32_t i = 0; i < options.sources_max; ++i) {
    free_sources.push_back(source_id(static_cast<std::uint16_t>(i)));
  }
  if (stored) {
    durable = *stored;
    if (durable.model_fingerprint != options.model.fingerprint) {
      return stop(true, "the durable record belongs to another model");
    }
    if (durable.generation.value != 0) {
      if (durable.routing_digest != options.routing_digest) {
        return stop(true, "the durable record was made with other routers, biases or tables");
      }
      if (options.checkpoint_digest != 0 &&
          durable.checkpoint_digest != options.checkpoint_digest) {
        return stop(true, "the durable record was made with other weight files");
      }
      auto parsed = eplb::placement::from_canonical(std::as_bytes(std::span(durable.placement)));
      if (!parsed || durable.checksums.size() !=
                         parsed->layers().size() * std::size_t{parsed->dense_slots()}) {
        return stop(true, "the placement in the durable record is not readable");
      }
      auto report = resolution::read_report(durable.resolution, "the durable record");
      if (!report) return stop(true, report.error().text);
      resolved = std::make_shared<const resolution::resolution_report>(std::move(*report));
      plan = std::move(*parsed);
      tell_unused_settings();
      for (const auto& span : plan->spans()) {
        member& m = members[span.name];
        m.name = span.name;
        m.id = span.worker;
        m.first_slot = span.first_slot;
        m.slots = span.slots;
      }
    }
  }
  durable.model_fingerprint = options.model.fingerprint;
  durable.routing_digest = options.routing_digest;
  next_session = durable.next_session;
  epoch_wanted = true;
  write_next();
}

void core::state::settle(time_ns now) {
  if (ended || starting) return;
  consider_first_plan();
  consider_decision();
  publish_if_due(now);
  tell_suspects();
  settle_adapters();
  answer_resumes(now);
  finish_attaches();
  if (!ended) write_next();
}

void core::state::on(const time_passed&, time_ns now) {
  write_again(now);
  if (starting) return;
  detect_silence(now);
  turn_window(now);
  for (auto& [name, m] : members) try_serve(m, now);
  resend(now);
  resend_adapters(now);
  lapse_sessions(now);
}

// After a stop of this process nobody's silence or lease is judged by it, and workers that gave it
// up meanwhile get the time to come back before sources hear of it.
void core::state::wake(time_ns now, duration_ns away) {
  if (away <= options.heartbeat_timeout) return discount(now, away);
  log(log_event::level::warn, "was_stopped",
      fmt::format("for {} ms: nobody is judged by that time", away / k_millisecond));
  for (auto& [name, m] : members) m.heard_at = now;
  for (auto& [id, s] : sessions) s.lease_until += away;
  if (collecting) collecting_since = now;
  woke_at = now;
  patient_until = now + options.rejoin_limit;
}

// A stop too short for anybody to give this process up: nobody was silent meanwhile either.
void core::state::discount(time_ns now, duration_ns away) {
  for (auto& [name, m] : members) {
    m.heard_at = std::min(now, m.heard_at + away);
    if (m.probed_at != 0) m.probed_at = std::min(now, m.probed_at + away);
  }
  for (auto& [id, s] : sessions) s.lease_until += away;
  if (collecting) collecting_since = std::min(now, collecting_since + away);
}

void core::state::on(const set_log_level& e, time_ns) { log_level = e.level; }

void core::state::on(const shut_down&, time_ns) {
  if (attempt && attempt->asked && !attempt->decided) {
    for (const auto& [name, m] : members) {
      send(m, control::abort_plan{durable.epoch, k_first_generation, attempt->hash,
                                  m.told.incarnation});
    }
  }
  stop(false, "shut down");
}

void core::state::stop(bool failed, std::string why, reason cause) {
  if (ended) return;
  ended = true;
  answer_all(make_error(reason::shutting_down, "the coordinator"));
  if (failed) log(log_event::level::error, "coordinator_stops", why);
  emit(stopped{failed, std::move(why), cause});
}

void core::state::log(log_event::level severity, std::string name, std::string detail,
                      log_subject about) {
  if (severity != log_event::level::debug) {
    recent.push_front({severity, name, detail, step_time});
    if (recent.size() > k_events_shown) recent.pop_back();
  }
  emit(log_event{severity, std::move(name), std::move(detail), std::move(about)});
}

}  // namespace moetier::coordinator
