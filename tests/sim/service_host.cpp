// Attention services: they open a session, attach its source half, and keep its lease and what
// their link shows them: snapshots and suspicions. Their calls are in service_calls.cpp.

#include <algorithm>

#include <fmt/core.h>

#include "tests/sim/world.hpp"

namespace moetier::sim {

using namespace coordinator;

namespace {

constexpr duration_ns k_turn = 50 * k_millisecond;

}  // namespace

// When what the coordinator says now reaches a service: in order, as on its one connection.
time_ns world::told(std::size_t s) {
  time_ns& last = services_[s].told_at;
  last = std::max(last + 1, clock_.now() + hop());
  return last;
}

duration_ns world::hop() { return dice_.between(20 * k_microsecond, k_millisecond); }

void world::in_service(std::size_t s, std::uint64_t life, std::function<void()> what) {
  in_process(services_[s], life, std::move(what));
}

void world::start_service(std::size_t s) {
  if (services_[s].up) return;
  service_host host;
  host.life = services_[s].life + 1;
  host.up = true;
  const std::uint64_t life = host.life;
  drop_source(s, true);
  services_[s] = std::move(host);
  clock_.after(dice_.below(k_turn), [this, s, life] { service_turn(s, life); });
}

// A killed one says nothing: its lease lapses.
void world::kill_service(std::size_t s) {
  service_host& host = services_[s];
  if (!host.up) return;
  host.up = false;
  drop_source(s, true);
  clock_.after(dice_.between(20 * k_millisecond, 1500 * k_millisecond),
               [this, s] { start_service(s); });
}

void world::session_over(std::size_t s) {
  drop_source(s, false);
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
        host.connected_at = clock_.now();
        if (head_.newest) tell_snapshot(s, head_.newest);
        tell_suspicion(s, head_.suspicion);
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
        e.request.tokens_max = k_tokens_max;
        e.request.micro_batches = host.micro_batches =
            static_cast<std::uint32_t>(dice_.between(1, 2));
        e.request.return_mode = 1;
        ask(s, e, last_token_);
      } else if (host.phase == service_phase::attaching) {
        const request_token token = ++last_token_;
        ask(s,
            attach_session{token, *host.session, host.incarnation, host.source_half->shape(),
                           host.source_half->address()},
            token);
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
  });
}

void world::tell_snapshot(std::size_t s, transport::snapshot_ptr snapshot) {
  clock_.at(told(s), [this, s, life = services_[s].life, snapshot = std::move(snapshot)] {
    in_service(s, life, [this, s, snapshot] {
      service_host& host = services_[s];
      if (!host.snapshot || transport::is_newer(*snapshot, *host.snapshot)) {
        host.snapshot = snapshot;
        host.snapshot_at = clock_.now();
        wake_caller(s, host.life);
      }
    });
  });
}

void world::tell_suspicion(std::size_t s, transport::suspicion_ptr suspicion) {
  clock_.at(told(s), [this, s, life = services_[s].life, suspicion = std::move(suspicion)] {
    in_service(s, life, [this, s, suspicion] {
      services_[s].suspicion = suspicion;
      services_[s].suspicion_at = clock_.now();
    });
  });
}

// Admission counts all that the tenant holds, also what a restarted coordinator learned of workers.
void world::check_tenant(const std::string& name) {
  const tenant_limits* limits = find_tenant(head_options_.tenants, name);
  std::size_t count = 0;
  std::uint64_t tokens = 0;
  for (const session_view& held : head_.core->view(clock_.now()).sessions) {
    if (held.tenant != name) continue;
    ++count;
    // One that opened in the same step is judged at its own answer.
    if (const auto terms = granted_.find(held.session); terms != granted_.end()) {
      tokens += std::uint64_t{terms->second.tokens_max} * terms->second.micro_batches;
    }
    check(held.urgency >= limits->highest, "a session of a class above its tenant's highest");
  }
  check(count <= limits->sessions, "more sessions than its tenant may have");
  check(tokens <= limits->tokens_in_flight || limits->tokens_in_flight == 0,
        "more tokens in flight than its tenant may have");
}

// Who resumes has the terms that it was granted first, of whichever coordinator.
void world::check_granted_again(const session_grant& grant) {
  const session_grant& was = granted_.at(grant.session);
  check(grant.source == was.source && grant.tokens_max == was.tokens_max &&
            grant.micro_batches == was.micro_batches && grant.top_k == was.top_k &&
            grant.urgency == was.urgency,
        [&] { return fmt::format("session {} was resumed on other terms", grant.session.value); });
}

void world::answer(request_token token, const expected<session_grant>& grant) {
  check(head_.open_tokens.erase(token) == 1, "a request was answered twice, or never asked");
  if (grant) {
    check(grant->snapshot != nullptr, "a grant without a snapshot");
    check(head_.disk && grant->session.value < head_.disk->next_session,
          "a session id that is not reserved");
  }
  const bool known = grant && granted_.contains(grant->session);
  if (grant && !known) {
    session_grant terms = *grant;
    terms.snapshot = nullptr;
    granted_.emplace(grant->session, std::move(terms));
  }
  for (std::size_t s = 0; s < services_.size(); ++s) {
    if (services_[s].awaited != token) continue;
    if (grant && services_[s].phase == service_phase::opening) {
      check(!known, "a session id was given twice");
      check_tenant(fmt::format("service-{}", s));
    }
    if (grant && services_[s].phase == service_phase::resuming) {
      check(known, "a session was resumed that was never granted");
      check_granted_again(*grant);
    }
    clock_.at(told(s), [this, s, life = services_[s].life, token, grant] {
      in_service(s, life, [this, s, token, grant] {
        service_host& host = services_[s];
        if (host.awaited != token) return;
        host.awaited = 0;
        if (host.phase == service_phase::opening) {
          if (!grant) return session_over(s);
          host.session = grant->session;
          host.source = grant->source;
          if (!host.snapshot || transport::is_newer(*grant->snapshot, *host.snapshot)) {
            host.snapshot = grant->snapshot;
          }
          open_source(s);
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
    clock_.at(told(s), [this, s, life = services_[s].life, token, ok = result.has_value()] {
      in_service(s, life, [this, s, token, ok] {
        service_host& host = services_[s];
        if (host.awaited != token) return;
        host.awaited = 0;
        if (host.phase == service_phase::attaching && ok) {
          host.phase = service_phase::running;
          begin_calls(s);
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

}  // namespace moetier::sim
