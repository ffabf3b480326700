// What runs by the clock: hello again while unanswered, heartbeats, load reports, the end of
// leaving.

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

}  // namespace

void core::state::obey(const control::heartbeat_answer& m) {
  if (m.epoch < highest) {
    ++stale_refused;
    return;
  }
  highest = m.epoch;
  if (m.log == log_level) return;
  log_level = m.log;
  emit(set_log_level{m.log});
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
    beat_at = now;
    say(control::heartbeat{.incarnation = options.incarnation,
                           .sequence = ++beat,
                           .epoch = highest,
                           .generation = serving ? serving->generation : generation_number(),
                           .engine_tick = progress.tick,
                           .tickets_ended = progress.tickets_ended,
                           .oldest_batch_ns = progress.oldest_batch_ns});
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
