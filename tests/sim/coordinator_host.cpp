// The shell around the coordinator's core: disk, links and clients as models. What must hold of its
// effects stands in coordinator_checks.cpp.

#include <algorithm>

#include <fmt/core.h>

#include "tests/sim/world.hpp"

namespace moetier::sim {

using namespace coordinator;

void world::in_coordinator(std::uint64_t life, std::function<void()> what) {
  in_process(head_, life, std::move(what));
}

void world::start_coordinator() {
  if (head_.up) return;
  head_.up = true;
  ++head_.life;
  head_.frozen_until = 0;
  head_.waiting.clear();
  head_.steady_since = clock_.now();
  head_.stopped_since = 0;
  head_.woke_at = 0;
  head_.heard.clear();
  head_.joined.clear();
  head_.started = clock_.now();
  head_.committing.clear();
  head_.gone_sources.clear();
  head_.newest = nullptr;
  head_.suspicion = nullptr;
  head_.disk_failed = false;
  trace([] { return std::string("coordinator starts"); });
  head_.core = std::make_unique<core>(head_options_, head_.disk);
  const std::uint64_t life = head_.life;
  for (const effect& e : head_.core->start(clock_.now())) {
    if (!apply(e)) return;
  }
  clock_.after(dice_.below(head_options_.heartbeat_interval),
               [this, life] { coordinator_beat(life); });
}

void world::kill_coordinator() {
  if (!head_.up) return;
  head_.up = false;
  trace([] { return std::string("coordinator dies"); });
  if (head_.writing) {  // on its way to the disk: it got there or it did not
    if (dice_.chance(50'000)) head_.disk = head_.writing->value;
    head_.writing.reset();
  }
  head_.open_tokens.clear();  // clients see their connection break
  head_.seen.clear();
  std::vector<link_number> all;
  for (const auto& [number, l] : links_) all.push_back(number);
  for (const link_number number : all) close_from_coordinator(number);
  const std::uint64_t life = head_.life;
  for (std::size_t s = 0; s < services_.size(); ++s) {
    clock_.after(hop(), [this, s, life] {
      if (services_[s].connected_life == life) services_[s].connected_life = 0;
    });
  }
  clock_.after(dice_.between(10 * k_millisecond, k_second), [this] { start_coordinator(); });
}

void world::coordinator_beat(std::uint64_t life) {
  in_coordinator(life, [this, life] {
    step_coordinator(time_passed{});
    if (head_.up && head_.life == life) {
      check_coordinator();
      clock_.after(head_options_.heartbeat_interval, [this, life] { coordinator_beat(life); });
    }
  });
}

void world::step_coordinator(const event& e) {
  bool first = true;
  for (const effect& f : head_.core->step(e, clock_.now())) {
    if (!std::exchange(first, false) && dice_.chance(rates_.crash_in_step)) {
      return kill_coordinator();
    }
    if (!apply(f)) return;
  }
}

// False: the process is gone, and with it the effects that were to follow.
bool world::apply(const effect& e) {
  if (const auto* send = std::get_if<send_to_worker>(&e)) {
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.epoch; }) {
            check(head_.disk && m.epoch <= head_.disk->epoch,
                  "a worker was told an epoch that is not durable");
          }
          if constexpr (std::is_same_v<std::decay_t<decltype(m)>, control::commit>) {
            check(head_.disk->generation == m.generation && head_.disk->plan == m.plan,
                  "COMMIT was sent before its decision was durable");
            head_.committing.emplace(m.incarnation, clock_.now());
          }
          if constexpr (std::is_same_v<std::decay_t<decltype(m)>, control::attach_source>) {
            head_.attached_as[m.source.session] = m.source.incarnation;
          }
        },
        send->body);
    const auto at = links_.find(send->link);
    if (at != links_.end()) to_worker(at->second, send->body);
  } else if (const auto* cut = std::get_if<cut_worker_link>(&e)) {
    close_from_coordinator(cut->link);
  } else if (const auto* write = std::get_if<write_record>(&e)) {
    check(!head_.writing, "two writes of the record at once");
    check(write->value.epoch >= write->expected, "the epoch sinks in the record");
    head_.writing = *write;
    const bool done = !dice_.chance(rates_.disk_fails);
    clock_.after(dice_.between(50 * k_microsecond, 20 * k_millisecond),
                 [this, life = head_.life, done] { finish_write(life, done); });
  } else if (const auto* publish = std::get_if<publish_snapshot>(&e)) {
    check_published(*publish->snapshot);
    check_newly_live(*publish->snapshot);
    for (const transport::snapshot_worker& w : publish->snapshot->workers) {
      if (w.live) head_.committing.erase(w.incarnation);
    }
    head_.newest = publish->snapshot;
    last_published_ = publish->snapshot;
    for (std::size_t s = 0; s < services_.size(); ++s) {
      if (services_[s].connected_life == head_.life) tell_snapshot(s, publish->snapshot);
    }
  } else if (const auto* suspect = std::get_if<coordinator::tell_suspicion>(&e)) {
    check(!head_.suspicion || suspect->suspicion->number > head_.suspicion->number,
          "a suspicion was given an older number");
    head_.suspicion = suspect->suspicion;
    for (std::size_t s = 0; s < services_.size(); ++s) {
      if (services_[s].connected_life == head_.life) tell_suspicion(s, suspect->suspicion);
    }
  } else if (const auto* granted = std::get_if<answer_session>(&e)) {
    answer(granted->token, granted->grant);
  } else if (const auto* done = std::get_if<answer_done>(&e)) {
    answer(done->token, done->result);
  } else if (const auto* ended = std::get_if<session_ended>(&e)) {
    check_lapsed(*ended);
    check_given_up(*ended);
    for (std::size_t s = 0; s < services_.size(); ++s) {
      if (services_[s].connected_life != head_.life) continue;
      clock_.at(told(s), [this, s, life = services_[s].life, session = ended->session] {
        in_service(s, life, [this, s, session] {
          if (services_[s].session == session) session_over(s);
        });
      });
    }
  } else if (const auto* said = std::get_if<log_event>(&e)) {
    trace([&] { return fmt::format("coordinator: {} {}", said->event, said->detail); });
  } else if (const auto* stop = std::get_if<stopped>(&e)) {
    check(!stop->failed || head_.disk_failed, "the coordinator gave up: " + stop->why);
    check(head_.open_tokens.empty(), "a request was not answered at the end");
    kill_coordinator();
    return false;
  }
  return true;
}

void world::finish_write(std::uint64_t life, bool done) {
  if (!head_.up || head_.life != life || !head_.writing) return;  // its process died meanwhile
  const write_record w = *std::exchange(head_.writing, std::nullopt);
  const epoch_number held = head_.disk ? head_.disk->epoch : epoch_number();
  // What a failing disk kept all the same is met by the next try.
  check(held == w.expected || (head_.disk_failed && held == w.value.epoch),
        "somebody else wrote the record");
  if (done && head_.disk_failed) head_.disk_since = clock_.now();
  head_.disk_failed = !done;
  // A failing disk may have kept it all the same.
  if (done || dice_.chance(50'000)) head_.disk = w.value;
  in_coordinator(life, [this, w, done] {
    step_coordinator(record_written{w.value.epoch, done, done ? "" : "the disk is full"});
  });
}

}  // namespace moetier::sim
