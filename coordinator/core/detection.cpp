// Detection: what a worker's beats show, whom sources are told to avoid, and when a worker is given
// up. The process heartbeat of an actor system beats for an engine that is stuck, so progress
// decides. A suspicion steers sources and nothing else; only the epoch that a loss asks for removes
// a member. What sources report makes the coordinator look, never judge: one behind a bad link must
// not vote others out.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"

namespace moetier::coordinator {
namespace {

constexpr std::size_t k_losses_kept = 32;
// A probed worker has this many beats' time to answer before it is suspected.
constexpr std::uint64_t k_probe_intervals = 2;

}  // namespace

// --- beats ---

// Counts as missed: the engine has work and did not turn since the last beat, or its oldest batch
// is older than a worker may be silent.
bool core::state::shows_no_progress(const member& from, const control::heartbeat& m) const {
  const bool stands = m.oldest_batch_ns > 0 && m.engine_tick == from.tick;
  return stands || m.oldest_batch_ns > options.heartbeat_timeout;
}

void core::state::hear(member& from, const control::heartbeat& m, time_ns now) {
  if (m.epoch > durable.epoch) return meet_epoch(m.epoch);
  if (m.sequence <= from.sequence) {
    ++stale_refused;
    return;
  }
  if (m.device == control::device_state::lost) {
    emit(cut_worker_link{*from.link});
    return lose(from, loss_cause::device, "its device is lost");
  }
  const bool was_stuck = std::exchange(from.stuck, shows_no_progress(from, m));
  from.sequence = m.sequence;
  from.tick = m.engine_tick;
  if (from.stuck) {
    ++beats_without_progress;
  } else {
    from.heard_at = now;
    from.suspected = false;
  }
  if (was_stuck && !from.stuck && from.at == member_stage::joined) bring_in(from, false, now);
  send(from, control::heartbeat_answer{m.sequence, durable.epoch, durable.generation, log_level});
}

void core::state::hear(member& from, const control::load_report& m, time_ns) {
  if (m.generation != durable.generation || m.plan != durable.plan) return;
  from.rows_total = m.rows_total;
  from.calls_total = m.calls_total;
  if (plan && m.counts.size() == plan->layers().size() * std::size_t{from.slots}) {
    from.counts = m.counts;
  }
}

void core::state::on(const late_report& e, time_ns now) {
  if (find_session(e.session, e.incarnation) == nullptr) return;
  for (auto& [name, m] : members) {
    if (m.id != e.worker || m.told.incarnation != e.worker_incarnation || !m.live()) continue;
    ++late_reports;
    if (now - m.probed_at < options.heartbeat_interval) return;
    m.probed_at = now;
    send(m, control::probe{durable.epoch, m.told.incarnation});
    log(log_event::level::info, "worker_probed",
        fmt::format("{}: session {} found it late", m.name, e.session.value));
  }
}

// --- suspicion ---

bool core::state::is_late(const member& m, time_ns now) const {
  if (now - m.heard_at > options.heartbeat_timeout / 2) return true;
  return m.probed_at >= m.heard_at &&
         now - m.probed_at > k_probe_intervals * options.heartbeat_interval;
}

// Tells sources when the set of suspects among the workers they know changes. Where all of an
// expert's replicas are suspect they go on as before.
void core::state::tell_suspects() {
  if (!published) return;
  std::vector<transport::suspect> now_suspected;
  for (const transport::snapshot_worker& shown : published->workers) {
    if (!shown.live) continue;
    const int span = plan->span_index(shown.worker);
    const member& m = members.at(plan->spans()[static_cast<std::size_t>(span)].name);
    const bool is_shown = m.told.incarnation == shown.incarnation;
    // A loss that the disk keeps from becoming durable: sources do without its worker meanwhile.
    const bool is_gone = !disk_trouble.empty() && !(m.live() && is_shown);
    if (is_gone || (m.suspected && is_shown)) {
      now_suspected.push_back({shown.worker, shown.incarnation});
    }
  }
  if (now_suspected == suspicion_told.workers) return;
  // As revisions: a restarted coordinator has a higher epoch and gives no number again.
  suspicion_told.number = std::max(suspicion_told.number, durable.epoch.value << 20) + 1;
  suspicion_told.workers = std::move(now_suspected);
  emit(tell_suspicion{std::make_shared<const transport::suspicion>(suspicion_told)});
}

void core::state::turn_window(time_ns now) {
  if (!plan || !window.due(now)) return;
  std::vector<std::vector<std::uint64_t>> totals;
  for (const auto& span : plan->spans()) totals.push_back(members.at(span.name).counts);
  window.turn(now, durable.generation, std::move(totals));
}

// --- losses ---

// Silence is soft evidence: when more than half fall silent inside one detection time, the fault is
// more likely here, and they get a second one. Closed links never come this way.
void core::state::detect_silence(time_ns now) {
  const duration_ns timeout = options.heartbeat_timeout;
  while (!silent_losses.empty() && now - silent_losses.front() > timeout) {
    silent_losses.pop_front();
  }
  std::vector<std::string> silent;
  std::size_t watched = silent_losses.size();
  for (auto& [name, m] : members) {
    if (!m.link && m.live() && now >= patient_until) {
      lose(m, loss_cause::link_closed, "it did not come back after this coordinator was stopped");
    }
    if (!m.link) continue;
    ++watched;
    if (m.live() && !m.suspected && is_late(m, now)) {
      m.suspected = true;
      ++suspicions;
      log(log_event::level::warn, "worker_suspected",
          fmt::format("{}: no progress for {} ms", m.name, (now - m.heard_at) / k_millisecond));
    }
    if (now - m.heard_at > timeout) silent.push_back(name);
  }
  const bool suspect = (silent.size() + silent_losses.size()) * 2 > watched;
  if (suspect && !silent.empty() && !suspects_itself) {
    log(log_event::level::error, "suspects_itself",
        fmt::format("{} of {} workers fell silent together", silent.size(), watched));
  }
  suspects_itself = suspect && !silent.empty();
  for (const std::string& name : silent) {
    member& m = members.at(name);
    if (suspect && now - m.heard_at <= 2 * timeout) continue;
    silent_losses.push_back(now);
    emit(cut_worker_link{*m.link});
    lose(m, m.stuck ? loss_cause::stuck : loss_cause::silent,
         fmt::format("{} for {} ms", m.stuck ? "without progress" : "silent",
                     (now - m.heard_at) / k_millisecond));
  }
}

void core::state::note_loss(const member& gone, loss_cause cause) {
  if (!gone.live()) return;  // sources did without it already
  detections.add(step_time - gone.heard_at);
  losses.push_back({.shown = {.number = ++losses_total,
                              .worker = gone.name,
                              .cause = cause,
                              .detection = step_time - gone.heard_at,
                              .recovery = 0},
                    .last_beat = gone.heard_at});
  if (losses.size() > k_losses_kept) losses.pop_front();
}

// A snapshot went out: it shows none of those that were lost so far.
void core::state::note_recoveries(time_ns now) {
  for (loss& l : losses) {
    if (l.shown.recovery != 0) continue;
    l.shown.recovery = std::max<duration_ns>(1, now - l.last_beat);
    recoveries.add(l.shown.recovery);
  }
}

}  // namespace moetier::coordinator
