// Attention services: they open a session, attach a source, submit calls by the newest snapshot
// that their link showed them, and judge each answer. Their rules for tickets are the source
// half's: an answer counts once, for the attempt that asked; a failed attempt is replayed whole.

#include <fmt/format.h>

#include "tests/sim/world.hpp"

namespace moetier::sim {

using namespace coordinator;

namespace {

constexpr duration_ns k_turn = 50 * k_millisecond;
constexpr duration_ns k_attempt_limit = 100 * k_millisecond;
constexpr duration_ns k_call_limit = 450 * k_millisecond;
constexpr std::uint32_t k_replays_max = 2;

}  // namespace

duration_ns world::hop() { return dice_.between(20 * k_microsecond, k_millisecond); }

void world::in_service(std::size_t s, std::uint64_t life, std::function<void()> what) {
  service_host& host = services_[s];
  if (!host.up || host.life != life) return;
  if (clock_.now() < host.frozen_until) {
    clock_.at(host.frozen_until, [this, s, life, what = std::move(what)]() mutable {
      in_service(s, life, std::move(what));
    });
    return;
  }
  what();
}

void world::start_service(std::size_t s) {
  if (services_[s].up) return;
  service_host host;
  host.life = services_[s].life + 1;
  host.up = true;
  const std::uint64_t life = host.life;
  services_[s] = std::move(host);
  clock_.after(dice_.below(k_turn), [this, s, life] { service_turn(s, life); });
}

// A killed one says nothing: its lease lapses.
void world::kill_service(std::size_t s) {
  service_host& host = services_[s];
  if (!host.up) return;
  host.up = false;
  calls_open_ -= host.tickets.size();
  host.tickets.clear();
  clock_.after(dice_.between(20 * k_millisecond, 1500 * k_millisecond),
               [this, s] { start_service(s); });
}

void world::session_over(std::size_t s) {
  services_[s].session.reset();
  services_[s].phase = service_phase::idle;
  services_[s].awaited = 0;
}

// --- control ---

void world::ask(std::size_t s, event e, request_token token) {
  services_[s].awaited = token;
  clock_.after(hop(), [this, e = std::move(e), token, life = services_[s].connected_life] {
    in_coordinator(life, [this, e, token] {
      if (token != 0) head_.open_tokens[token] = clock_.now();
      step_coordinator(e);
    });
  });
}

void world::service_turn(std::size_t s, std::uint64_t life) {
  in_service(s, life, [this, s, life] {
    service_host& host = services_[s];
    clock_.after(k_turn, [this, s, life] { service_turn(s, life); });
    if (host.connected_life == 0) {
      host.awaited = 0;
      if (host.phase == service_phase::opening || host.phase == service_phase::attaching) {
        session_over(s);  // nobody will answer
      }
      if (head_.up && clock_.now() >= head_.frozen_until) {
        host.connected_life = head_.life;
        if (head_.newest) tell_snapshot(s, head_.newest);
        if (host.session) host.phase = service_phase::resuming;
      }
    }
    if (host.connected_life != 0 && host.awaited == 0 && clock_.now() >= host.try_at) {
      host.try_at = clock_.now() + k_turn;
      if (host.phase == service_phase::idle) {
        host.phase = service_phase::opening;
        host.incarnation = incarnation_id(dice_.next() | 1);
        open_session e{++last_token_, {}};
        e.request.incarnation = host.incarnation;
        e.request.tenant = fmt::format("service-{}", s);
        e.request.tokens_max = 8;
        ask(s, e, last_token_);
      } else if (host.phase == service_phase::attaching) {
        attach_session e{++last_token_, *host.session, host.incarnation, {}, {}};
        e.shape = {.rows_max = 8,
                   .hidden_stride = 64,
                   .top_k = head_options_.model.top_k,
                   .return_stride = 64,
                   .return_rows_max = 8 * head_options_.model.top_k,
                   .banks = 2};
        e.address.assign(1 + dice_.below(200), std::byte{7});
        ask(s, e, last_token_);
      } else if (host.phase == service_phase::resuming) {
        const request_token token = ++last_token_;
        ask(s, resume_session{token, *host.session, host.incarnation}, token);
      } else if (host.phase == service_phase::running && dice_.chance(500) && !quiet_) {
        const request_token token = ++last_token_;
        ask(s, close_session{token, *host.session, host.incarnation}, token);
      }
    }
    if (host.connected_life != 0 && host.session && clock_.now() >= host.renew_at) {
      host.renew_at = clock_.now() + 250 * k_millisecond;
      const request_token kept = host.awaited;
      ask(s, renew_session{*host.session, host.incarnation}, 0);
      host.awaited = kept;
    }
    if ((host.phase == service_phase::running || host.phase == service_phase::resuming) &&
        host.session && host.snapshot && dice_.chance(strict_ ? 100'000 : 60'000)) {
      submit(s);
    }
  });
}

void world::tell_snapshot(std::size_t s, transport::snapshot_ptr snapshot) {
  clock_.after(hop(), [this, s, life = services_[s].life, snapshot = std::move(snapshot)] {
    in_service(s, life, [this, s, snapshot] {
      service_host& host = services_[s];
      if (!host.snapshot || transport::is_newer(*snapshot, *host.snapshot)) {
        host.snapshot = snapshot;
      }
    });
  });
}

// Admission counts all that the tenant holds, also what a restarted coordinator learned of workers.
void world::check_tenant(const std::string& name) {
  const tenant_limits* limits = find_tenant(head_options_.tenants, name);
  std::size_t count = 0;
  for (const session_view& held : head_.core->view(clock_.now()).sessions) {
    if (held.tenant != name) continue;
    ++count;
    check(held.urgency >= limits->highest, "a session of a class above its tenant's highest");
  }
  check(count <= limits->sessions, "more sessions than its tenant may have");
  check(8 * count <= limits->tokens_in_flight || limits->tokens_in_flight == 0,
        "more tokens in flight than its tenant may have");
}

void world::answer(request_token token, const expected<session_grant>& grant) {
  check(head_.open_tokens.erase(token) == 1, "a request was answered twice, or never asked");
  if (grant) {
    check(grant->snapshot != nullptr, "a grant without a snapshot");
    check(head_.disk && grant->session.value < head_.disk->next_session,
          "a session id that is not reserved");
  }
  for (std::size_t s = 0; s < services_.size(); ++s) {
    if (services_[s].awaited != token) continue;
    if (grant && services_[s].phase == service_phase::opening) {
      check(granted_.insert(grant->session).second, "a session id was given twice");
      check_tenant(fmt::format("service-{}", s));
    }
    clock_.after(hop(), [this, s, life = services_[s].life, token, grant] {
      in_service(s, life, [this, s, token, grant] {
        service_host& host = services_[s];
        if (host.awaited != token) return;
        host.awaited = 0;
        if (host.phase == service_phase::opening) {
          if (!grant) return session_over(s);
          host.session = grant->session;
          host.source = grant->source;
          host.phase = service_phase::attaching;
        } else if (host.phase == service_phase::resuming) {
          if (grant) {
            host.phase = service_phase::running;
          } else if (grant.error().code != status::unavailable) {
            return session_over(s);
          }
        }
        if (grant) tell_snapshot(s, grant->snapshot);
      });
    });
  }
}

void world::answer(request_token token, const expected<void>& result) {
  check(head_.open_tokens.erase(token) == 1, "a request was answered twice, or never asked");
  for (std::size_t s = 0; s < services_.size(); ++s) {
    if (services_[s].awaited != token) continue;
    if (services_[s].phase == service_phase::attaching && result) {
      check_attached(*services_[s].session);
    }
    clock_.after(hop(), [this, s, life = services_[s].life, token, ok = result.has_value()] {
      in_service(s, life, [this, s, token, ok] {
        service_host& host = services_[s];
        if (host.awaited != token) return;
        host.awaited = 0;
        if (host.phase == service_phase::attaching && ok) {
          host.phase = service_phase::running;
        } else if (host.phase == service_phase::attaching && host.session) {
          // Not attached: give the session up and begin again.
          const request_token closing = ++last_token_;
          ask(s, close_session{closing, *host.session, host.incarnation}, closing);
          session_over(s);
        } else if (host.phase == service_phase::running) {
          session_over(s);  // it was a close
        }
      });
    });
  }
}

// --- calls ---

void world::submit(std::size_t s) {
  service_host& host = services_[s];
  ticket t;
  t.number = ++last_ticket_;
  t.deadline = clock_.now() + k_call_limit;
  t.strict = strict_;
  t.layer_index = dice_.below(host.snapshot->placement.layers().size());
  for (std::uint64_t n = dice_.between(1, 6); n > 0; --n) {
    t.wanted.push_back(static_cast<std::int32_t>(dice_.below(host.snapshot->placement.experts())));
  }
  const std::uint64_t number = t.number;
  host.tickets.emplace(number, std::move(t));
  ++calls_open_;
  attempt(s, number);
}

void world::attempt(std::size_t s, std::uint64_t number) {
  service_host& host = services_[s];
  ticket& t = host.tickets.at(number);
  if (!host.session) return end(s, number, status::session_lost);
  const transport::snapshot_ptr snapshot = host.snapshot;
  const eplb::placement& p = snapshot->placement;
  t.generation = snapshot->generation;
  t.plan = snapshot->plan;
  t.waiting.clear();
  std::map<std::size_t, rows> exchanges;  // by span
  for (const std::int32_t expert : t.wanted) {
    const auto id = static_cast<std::uint32_t>(expert);
    if (!snapshot->shares.has_live_replica(t.layer_index, id)) {
      return end(s, number, status::unavailable);
    }
    const auto bounds = snapshot->shares.bounds(t.layer_index, id);
    const std::uint64_t u = dice_.below(k_shares_unit);
    std::size_t pick = 0;
    while (u >= bounds[pick]) ++pick;
    const std::uint32_t dense = p.replicas(t.layer_index, id)[pick];
    rows& r = exchanges[p.span_of(dense)];
    r.slots.push_back(p.global_slot(dense).value);
    r.experts.push_back(expert);
  }
  for (auto& [span, r] : exchanges) {
    r.ticket = number;
    r.attempt = t.attempt;
    r.session = *host.session;
    r.source = host.source;
    r.incarnation = host.incarnation;
    r.worker = snapshot->workers[span].incarnation;
    r.generation = snapshot->generation;
    r.plan = snapshot->plan;
    r.layer_index = t.layer_index;
    t.waiting.insert(r.worker);
    // The data plane knows a process by its address: a process that is gone gets nothing.
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].incarnation != r.worker || dice_.chance(rates_.lose)) continue;
      const auto arrive = [this, w, life = workers_[w].life, r = r, s, service_life = host.life] {
        in_worker(w, life, [this, w, r, s, service_life] { compute(w, r, s, service_life); });
      };
      clock_.after(hop(), arrive);
      if (dice_.chance(rates_.repeat)) clock_.after(dice_.below(200 * k_millisecond), arrive);
    }
  }
  clock_.after(k_attempt_limit, [this, s, life = host.life, number, which = t.attempt] {
    in_service(s, life, [this, s, number, which] {
      const auto at = services_[s].tickets.find(number);
      if (at == services_[s].tickets.end() || at->second.attempt != which) return;
      if (which == k_replays_max || clock_.now() + k_attempt_limit > at->second.deadline) {
        return end(s, number, status::timeout);
      }
      ++at->second.attempt;
      attempt(s, number);
    });
  });
}

void world::compute(std::size_t w, rows r, std::size_t s, std::uint64_t service_life) {
  worker_host& host = workers_[w];
  const auto at = host.sources.find(r.source);
  if (at == host.sources.end() || at->second.incarnation != r.incarnation ||
      at->second.session != r.session) {
    return;  // of no source that is attached here: dropped, counted, never answered
  }
  if (host.ending) return;
  const time_ns arrived = clock_.now();
  host.batches.insert(arrived);
  const time_ns begin = std::max(clock_.now(), host.stuck_until);
  clock_.at(begin + dice_.between(50 * k_microsecond, 4 * k_millisecond),
            [this, w, life = host.life, r = std::move(r), s, service_life, arrived]() mutable {
              in_worker(w, life, [this, w, r, s, service_life, arrived]() mutable {
                worker_host& engine = workers_[w];
                engine.batches.erase(engine.batches.find(arrived));
                const auto& plan = engine.serving;
                r.stale = !plan || plan->generation != r.generation || plan->plan != r.plan;
                for (const std::uint32_t slot : r.slots) {
                  if (r.stale) break;
                  const auto& pages = plan->pages[r.layer_index];
                  check(slot >= plan->first_slot && slot - plan->first_slot < pages.size(),
                        "rows came to a worker that has no such slot");
                  r.contents.push_back(pages[slot - plan->first_slot]);
                  ++engine.rows;
                }
                if (dice_.chance(rates_.lose)) return;
                const auto deliver = [this, s, service_life, r] {
                  in_service(s, service_life, [this, s, r] { take(s, r); });
                };
                clock_.after(hop(), deliver);
                if (dice_.chance(rates_.repeat)) {
                  clock_.after(dice_.below(300 * k_millisecond), deliver);
                }
              });
            });
}

// R10: an answer counts only for the open attempt that asked it, and once.
void world::take(std::size_t s, const rows& r) {
  const auto at = services_[s].tickets.find(r.ticket);
  if (at == services_[s].tickets.end()) return;
  ticket& t = at->second;
  if (t.attempt != r.attempt || !t.waiting.contains(r.worker)) return;
  if (r.stale) return;  // the whole attempt is replayed when its time is over
  check(r.generation == t.generation && r.plan == t.plan, "an answer of another generation");
  check(r.contents == r.experts, "a row was computed with another expert's weights");
  t.waiting.erase(r.worker);
  if (t.waiting.empty()) end(s, r.ticket, status::ok);
}

void world::end(std::size_t s, std::uint64_t number, status result) {
  const auto at = services_[s].tickets.find(number);
  check(at != services_[s].tickets.end(), "a call ended twice");
  check(clock_.now() <= at->second.deadline + 100 * k_millisecond ||
            services_[s].frozen_until + k_call_limit > clock_.now(),
        "a call ended after its deadline");
  if (at->second.strict) {
    check(result == status::ok && at->second.attempt == 0,
          fmt::format("a call of service {} ended {} at attempt {} though all faults are over", s,
                      status_name(result), at->second.attempt));
  }
  ++(result == status::ok ? calls_ok_ : calls_failed_);
  --calls_open_;
  services_[s].tickets.erase(at);
}

}  // namespace moetier::sim
