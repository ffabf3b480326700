// What must hold of every effect of the coordinator's core, and of its view at every beat.

#include <algorithm>

#include <fmt/core.h>

#include "tests/sim/world.hpp"

namespace moetier::sim {

using namespace coordinator;

void world::check_published(const transport::routing_snapshot& s) {
  check(head_.disk && s.epoch == head_.disk->epoch, "published under an epoch that is not durable");
  check(s.generation == head_.disk->generation && s.plan == head_.disk->plan,
        "published a plan that is not decided");
  check(!last_published_ || transport::is_newer(s, *last_published_),
        "published a snapshot that is not newer");
  const auto& spans = s.placement.spans();
  for (std::size_t i = 0; last_published_ && i < spans.size(); ++i) {
    const transport::snapshot_worker& before = last_published_->workers[i];
    const bool same = s.workers[i].live && s.workers[i].incarnation == before.incarnation;
    check(!before.live || same || s.epoch > last_published_->epoch,
          "a worker is masked before the epoch without it is durable");
  }
  check_left_out(s);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const transport::snapshot_worker& shown = s.workers[i];
    if (shown.live) {
      check(head_.seen.contains(shown.incarnation) || may_be_awaited(shown),
            "routes to a worker whose link is closed");
      const worker_host* host = find_worker(shown.incarnation);
      check(host == nullptr || (host->serving && host->serving->generation == s.generation &&
                                host->serving->plan == s.plan),
            "routes to a worker that has not committed");
      check(host == nullptr || host->name == spans[i].name, "routes to a worker of another name");
      for (const std::uint32_t adapter : s.adapters) {
        check(host == nullptr || host->adapters.contains(adapter),
              "an adapter is listed that a live worker does not hold");
      }
      continue;
    }
    for (std::size_t layer = 0; layer < s.placement.layers().size(); ++layer) {
      for (std::uint32_t slot = 0; slot < spans[i].slots; ++slot) {
        check(s.shares.units(layer)[s.placement.first_dense(i) + slot] == 0,
              "a masked worker has a share");
      }
    }
  }
  for (std::size_t layer = 0; layer < s.placement.layers().size(); ++layer) {
    for (std::uint32_t e = 0; e < s.placement.experts(); ++e) {
      bool live = false;
      for (const std::uint32_t d : s.placement.replicas(layer, e)) {
        live = live || s.workers[s.placement.span_of(d)].live;
      }
      check(live == s.shares.has_live_replica(layer, e), "an expert's shares miss a live replica");
    }
  }
}

// When the coordinator last went on after a stop that it noticed; 0 = it never did.
time_ns world::last_wake() const {
  const bool over = head_.stopped_since != 0 && clock_.now() >= head_.steady_since;
  const bool noticed = head_.steady_since - head_.stopped_since >=
                       head_options_.heartbeat_timeout - head_options_.heartbeat_interval;
  return over && noticed ? head_.steady_since : head_.woke_at;
}

// Whom sources route to may be without a link for a while after the coordinator was stopped: it
// gave the coordinator up meanwhile. Nobody becomes routable that way, and who may route elsewhere
// is told to.
bool world::may_be_awaited(const transport::snapshot_worker& shown) const {
  const time_ns woke = last_wake();
  const duration_ns beat = head_options_.heartbeat_interval;
  if (woke == 0 || clock_.now() - woke > head_options_.rejoin_limit + beat) return false;
  const auto heard = head_.heard.find(shown.incarnation);
  if (heard != head_.heard.end() && heard->second > woke + 4 * beat) return false;
  if (!last_published_) return false;
  const auto& before = last_published_->workers;
  return std::any_of(before.begin(), before.end(), [&](const transport::snapshot_worker& w) {
    return w.live && w.worker == shown.worker && w.incarnation == shown.incarnation;
  });
}

// Who becomes routable has every attached source.
void world::check_newly_live(const transport::routing_snapshot& s) {
  const tier_view view = head_.core->view(clock_.now());
  for (std::size_t i = 0; i < s.workers.size(); ++i) {
    const transport::snapshot_worker& shown = s.workers[i];
    const bool known = last_published_ && last_published_->workers[i].live &&
                       last_published_->workers[i].incarnation == shown.incarnation;
    const worker_host* host = shown.live && !known ? find_worker(shown.incarnation) : nullptr;
    if (host == nullptr) continue;
    for (const session_view& held : view.sessions) {
      check(!held.attached || host->sources.contains(held.source),
            fmt::format("{} is routed to without a source of session {}", host->name,
                        held.session.value));
    }
  }
}

// A session that was told "attached" finds its source in every worker that it may route to.
void world::check_attached(session_id session) {
  const tier_view view = head_.core->view(clock_.now());
  for (const session_view& s : view.sessions) {
    if (s.session != session) continue;
    for (const worker_view& member : view.workers) {
      if (member.state != worker_state::serving) continue;
      const worker_host* host = find_worker(member.incarnation);
      if (host == nullptr) continue;
      const auto at = host->sources.find(s.source);
      check(at != host->sources.end() && at->second.session == session,
            fmt::format("session {} was told attached; worker {} has not got it", session.value,
                        host->name));
    }
  }
}

void world::check_coordinator() {
  const tier_view v = head_.core->view(clock_.now());
  check(!head_.disk || v.epoch <= head_.disk->epoch, "believes in an epoch that is not durable");
  check(v.workers.size() <= workers_.size(), "more members than workers");
  check(v.sessions.size() <= head_options_.sessions_max, "more sessions than allowed");
  check(!v.ready || (v.snapshot && v.lost_experts == 0), "ready without all experts");
  check(v.snapshot == head_.newest, "the view shows another snapshot than was published");
  check_detection();
  std::set<source_id> places;
  for (const session_view& s : v.sessions) {
    check(places.insert(s.source).second, "two sessions have one source");
    check(s.source.value < head_options_.sources_max, "a source beyond the table");
  }
  for (const auto& [token, since] : head_.open_tokens) {
    check(clock_.now() - since < 8 * k_second, "a request is not answered");
  }
}

// Whom a snapshot leaves out must have given cause: nobody goes for the coordinator's own stop, for
// what sources say or before its time, and most at once not before a second one.
void world::check_left_out(const transport::routing_snapshot& s) {
  if (!last_published_ || !rates_were_kind_) return;
  const duration_ns timeout = head_options_.heartbeat_timeout;
  const duration_ns least = timeout - head_options_.heartbeat_interval - 5 * k_millisecond;
  std::vector<const worker_host*> still;
  for (std::size_t i = 0; i < s.workers.size(); ++i) {
    const transport::snapshot_worker& before = last_published_->workers[i];
    const bool same = s.workers[i].live && s.workers[i].incarnation == before.incarnation;
    const worker_host* host = before.live && !same ? find_worker(before.incarnation) : nullptr;
    if (host == nullptr || host->touched) continue;
    check(host->was_still, [&] { return host->name + " is left out; nothing happened to it"; });
    if (head_.newest == nullptr) continue;  // a restart that did not find it has its own clock
    check(clock_.now() - host->still_since >= least,
          [&] { return host->name + " is left out before its time"; });
    still.push_back(host);
  }
  for (const worker_host* host : still) {
    check(
        still.size() * 2 <= workers_.size() || clock_.now() - host->still_since >= least + timeout,
        "most workers are left out at once, without a second look");
  }
}

// A lease lapses only when its client was not heard for so long while the coordinator listened.
void world::check_lapsed(const session_ended& ended) {
  if (ended.why.why != reason::lease_lapsed) return;
  for (const service_host& host : services_) {
    if (host.session != ended.session || !host.up || host.connected_life != head_.life) continue;
    const time_ns kept_since = std::max(host.connected_at, host.frozen_until);
    // What it said during a stop of the coordinator is not heard yet.
    const time_ns deaf_from = std::max(head_.stopped_since, kept_since);
    const time_ns deaf_until = std::min(head_.steady_since, clock_.now());
    const duration_ns deaf =
        head_.stopped_since != 0 && deaf_until > deaf_from ? deaf_until - deaf_from : 0;
    check(clock_.now() - deaf < kept_since + head_options_.lease + k_millisecond, [&] {
      return fmt::format("session {} lapsed though its client kept it", ended.session.value);
    });
  }
}

// A session ends for a worker's sake only when that one had its time to take the source, or told
// that it dropped its rows.
void world::check_given_up(const session_ended& ended) {
  if (ended.why.why != reason::attach_refused) return;
  const auto had_its_time = [&](time_ns since) {
    return clock_.now() - since >= head_options_.attach_limit;
  };
  const bool late = head_.newest == nullptr
                        ? had_its_time(head_.started)
                        : std::any_of(head_.committing.begin(), head_.committing.end(),
                                      [&](const auto& w) { return had_its_time(w.second); });
  const auto source = head_.attached_as.find(ended.session);
  const bool gone =
      source != head_.attached_as.end() && head_.gone_sources.contains(source->second);
  check(late || gone, [&] {
    return fmt::format("session {} was given up before its time: {}", ended.session.value,
                       ended.why.text);
  });
}

// Who stands still is left out in time, whatever its link looks like; where most stand still they
// get a second timeout. While the disk fails nobody is: no epoch becomes durable, and sources are
// told to spare whom the newest one cannot leave out.
void world::check_detection() {
  if (head_.newest == nullptr || rates_.disk_fails > 0 || head_.disk_failed) return;
  const duration_ns timeout = head_options_.heartbeat_timeout;
  // By when it is left out. It counts as one of several if another one may have been found silent
  // since, though that one goes on by now.
  const auto limit_of = [&](time_ns since) {
    const time_ns silent_from = since - 2 * head_options_.heartbeat_interval;
    const auto silent = std::count_if(workers_.begin(), workers_.end(), [&](const worker_host& w) {
      return !w.up || w.touched || silent_from < std::max(w.frozen_until, w.stuck_until);
    });
    const bool alone = silent <= 1 && workers_.size() > 2;
    // Its last beat that counts, the coordinator's turn, and the epoch's way to the disk.
    return (alone ? timeout : 2 * timeout) + 2 * head_options_.heartbeat_interval +
           50 * k_millisecond;
  };
  for (const transport::snapshot_worker& shown : head_.newest->workers) {
    const worker_host* host = shown.live ? find_worker(shown.incarnation) : nullptr;
    if (host == nullptr) continue;
    const bool frozen = clock_.now() < host->frozen_until;
    const bool stuck = clock_.now() < host->stuck_until && host->computing;
    if (!frozen && !stuck) continue;
    if (!head_.seen.contains(shown.incarnation) && may_be_awaited(shown)) continue;
    // Its first beat after a freeze or a cut shows what its engine did before it.
    const time_ns heard_again = std::max(frozen ? 0 : host->frozen_until, host->cut_up_until);
    const time_ns stuck_since = std::max({host->busy_since, host->stuck_since, heard_again});
    const time_ns still_since = !stuck    ? host->frozen_since
                                : !frozen ? stuck_since
                                          : std::min(host->frozen_since, stuck_since);
    // A link that broke meanwhile took with it what its beats had shown.
    const auto joined = head_.joined.find(host->incarnation);
    const time_ns met = joined == head_.joined.end() ? 0 : joined->second;
    const time_ns since = std::max({still_since, head_.steady_since, head_.disk_since, met});
    check(clock_.now() < since || clock_.now() - since <= limit_of(since), [&] {
      return fmt::format("{} stands still for {} ms and is routed to", host->name,
                         (clock_.now() - since) / k_millisecond);
    });
  }
}

}  // namespace moetier::sim
