// What runs by the clock: hello again while unanswered, heartbeats and the lease that their answers
// renew, load reports, the end of leaving.

#include <fmt/core.h>

#include "workers/core/state.hpp"

namespace moetier::workers {
namespace {

// A coordinator that answers no beat for this many detection times is given up with its link; until
// then its silence costs nothing, as a committed generation is served without it.
constexpr std::uint64_t k_silence_timeouts = 2;
// Beats between `leaving` and the drain: the coordinator masks this worker first, so that sources
// stop sending before rows are refused.
constexpr std::uint64_t k_notice_intervals = 3;
constexpr duration_ns k_report_interval = k_second;
constexpr std::size_t k_beats_kept = 64;

}  // namespace

void core::state::obey(const control::heartbeat_answer& m) {
  if (m.epoch < highest) {
    ++stale_refused;
    return;
  }
  highest = m.epoch;
  while (!beats_sent.empty() && beats_sent.front().sequence <= m.sequence) {
    if (beats_sent.front().sequence == m.sequence) lease_from = beats_sent.front().at;
    beats_sent.pop_front();
  }
  if (m.log == log_level) return;
  log_level = m.log;
  emit(set_log_level{m.log});
}

void core::state::obey(const control::probe& m) {
  if (!is_own(m.incarnation) || !obeys(m.epoch, {})) return;
  // Whether an engine at work stands still shows from one beat to the next, an interval later: a
  // beat in between would count as missed, and several in turn would cost a sound worker its place.
  if (joined && progress.oldest_batch_ns == 0) say_beat(heard_at);  // the probe's own time
}

void core::state::say_beat(time_ns now) {
  beats_sent.push_back({++beat, now});
  if (beats_sent.size() > k_beats_kept) beats_sent.pop_front();
  say(control::heartbeat{.incarnation = options.incarnation,
                         .sequence = beat,
                         .epoch = highest,
                         .generation = serving ? serving->generation : generation_number(),
                         .engine_tick = progress.tick,
                         .tickets_ended = progress.tickets_ended,
                         .oldest_batch_ns = progress.oldest_batch_ns,
                         .device = progress.device});
}

// Counted from the sending of a beat, so it ends here before the coordinator may do without this
// worker, whose clock runs from the beat's coming. Lapsed, the worker serves on: it cannot tell a
// dead coordinator from a cut link, and its rows stay right.
void core::state::judge_lease(time_ns now) {
  const bool holds = joined && now - lease_from < options.heartbeat_timeout;
  if (joined && holds != leased) {
    log(holds ? log_event::level::info : log_event::level::warn,
        holds ? "lease_renewed" : "lease_lapsed",
        fmt::format("the coordinator's last answer is of {} ms ago",
                    (now - lease_from) / k_millisecond));
  }
  leased = holds;
}

void core::state::on(const engine_progress& e, time_ns) {
  const bool of_serving =
      e.counts.empty() || !serving || e.counted_generation == serving->generation;
  if (of_serving) {
    load_changed = load_changed || e.rows_total != progress.rows_total || !e.counts.empty();
  }
  engine_progress next = e;
  if (e.counts.empty()) {  // unchanged: what was told before still holds
    next.counted_generation = progress.counted_generation;
    next.counts = std::move(progress.counts);
  }
  progress = std::move(next);
}

void core::state::on(const time_passed&, time_ns now) {
  if (leaving && !drain_asked &&
      (!joined || now - leaving_at >= k_notice_intervals * options.heartbeat_interval)) {
    drain_asked = true;
    emit(drain_engine{});
  }
  if (leaving && now - leaving_at >= options.drain_limit) return stop(false, "drain limit");
  if (!linked) return;
  judge_lease(now);
  if (now - heard_at >= k_silence_timeouts * options.heartbeat_timeout) {
    heard_at = now;
    emit(drop_link{});
    return;
  }
  if (!joined) {
    if (!leaving && now - hello_at >= options.heartbeat_timeout) say_hello(now);
    return;
  }
  if (beat == 0 || now - beat_at >= options.heartbeat_interval) {
    beat_at = now;  // beats that answer probes come besides
    say_beat(now);
  }
  if (load_changed && serving && now - reported_at >= k_report_interval) {
    reported_at = now;
    load_changed = false;
    say(control::load_report{.incarnation = options.incarnation,
                             .generation = serving->generation,
                             .plan = serving->plan,
                             .rows_total = progress.rows_total,
                             .calls_total = progress.calls_total,
                             .counts = progress.counted_generation == serving->generation
                                           ? progress.counts
                                           : std::vector<std::uint64_t>()});
  }
}

}  // namespace moetier::workers
