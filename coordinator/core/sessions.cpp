// Sessions: one attention service's lease on the tier, and the requests about it. Every token is
// answered exactly once. Leases free resources; no row's rightness rests on them.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/base/no_credit.hpp"
#include "schemas/model/shared_experts_refusal.hpp"

namespace moetier::coordinator {
namespace {

bool is_printable(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

void core::state::answer(request_token token, expected<session_grant> grant) {
  emit(answer_session{token, std::move(grant)});
}
void core::state::answer_plain(request_token token, expected<void> result) {
  emit(answer_done{token, std::move(result)});
}

// --- open ---

// The request with every 0 replaced by what it stands for.
expected<session_request> core::state::check(session_request r) const {
  const model_description& model = options.model;
  if (r.tenant.empty() || r.tenant.size() > k_worker_name_bytes_max || !is_printable(r.tenant)) {
    return fail(reason::invalid_argument, "tenant", "not a name",
                "1 to 64 printable ASCII characters");
  }
  if (r.model_fingerprint != 0 && r.model_fingerprint != model.fingerprint) {
    return fail(reason::model_mismatch, fmt::format("{:016x}", r.model_fingerprint),
                fmt::format("{:016x}", model.fingerprint));
  }
  if (r.tokens_max == 0) r.tokens_max = options.tokens_max;
  if (r.tokens_max > options.tokens_max) {
    return fail(reason::limit_exceeded, "tokens_max", r.tokens_max, options.tokens_max);
  }
  if (r.micro_batches < 1 || r.micro_batches > k_micro_batches_max) {
    return fail(reason::invalid_argument, "micro_batches", r.micro_batches, "1 to 4");
  }
  if (r.top_k == 0) r.top_k = model.top_k;
  // Workers make room for row records of the model's width.
  if (r.top_k > model.top_k) return fail(reason::limit_exceeded, "top_k", r.top_k, model.top_k);
  if (r.return_mode > 1) {
    return fail(reason::invalid_argument, "return_mode", r.return_mode, "partial or exact");
  }
  if (r.return_dtype != dtype::f32 && r.return_dtype != dtype::bf16 &&
      r.return_dtype != dtype::f16) {
    return fail(reason::invalid_dtype, "return_dtype", dtype_name(r.return_dtype),
                "f32, bf16, f16");
  }
  if (r.gate_on_tier && (!model.router_reads_hidden || model.router_width != model.hidden_size)) {
    return fail(reason::not_enabled,
                "gate tier (this model's router reads another vector than its experts)");
  }
  if (r.shared_experts && (!published || published->shared_experts == 0)) {
    const std::string_view why = shared_experts_refusal(model);
    return fail(reason::not_enabled,
                fmt::format("shared_experts tier ({})",
                            why.empty() ? "moe.shared_experts of the tier is off" : why));
  }
  if (r.return_mode == 1 && published && !published->exact_allowed) {
    return fail(reason::not_enabled,
                "return mode exact (this backend's rows depend on each other)");
  }
  if (auto fits = check_bill(r); !fits) return unexpected_error(std::move(fits.error()));
  return r;
}

// What its banks take at one worker, and as much again at its own end: nothing is allocated for a
// session whose bill is over the limit.
expected<void> core::state::check_bill(const session_request& r) const {
  const model_description& model = options.model;
  const std::uint64_t row =
      transport::padded_stride(std::size_t{model.hidden_size} * sizeof(float));
  const std::uint32_t positions = r.top_k + (r.shared_experts ? model.shared.count : 0);
  const bool second_rows = r.shared_experts && model.weight_at == weight_point::input;
  const std::uint64_t rows = std::uint64_t{r.tokens_max} * (second_rows ? 2 : 1);
  const std::uint64_t back = r.return_mode == 1 ? positions : 1;  // exact: a row per position
  const std::uint64_t banks = std::max(2u, r.micro_batches);
  const std::uint64_t bill =
      banks * rows * (row + transport::record_stride(positions) + back * row);
  if (bill <= options.bank_bytes_max) return {};
  return fail(reason::memory_insufficient,
              fmt::format("a session of {} banks of {} tokens at each worker", banks, r.tokens_max),
              bill, options.bank_bytes_max);
}

tenant_use core::state::use_of(const std::string& tenant) const {
  tenant_use use;
  const auto add = [&](const session_request& r) {
    if (r.tenant != tenant) return;
    ++use.sessions;
    use.tokens += std::uint64_t{r.tokens_max} * r.micro_batches;
  };
  for (const auto& [id, s] : sessions) add(s.request);
  for (const open_session& e : parked_opens) add(e.request);
  return use;
}

// Whether this tenant may have it. The most urgent class it may have is what it gets unless it says
// otherwise.
expected<void> core::state::admit(session_request& r) const {
  const tenant_limits* limits = find_tenant(options.tenants, r.tenant);
  if (limits == nullptr) {
    return fail(reason::denied, fmt::format("tenant {}", r.tenant),
                "the tier serves the tenants of its configuration alone");
  }
  if (!r.urgency) r.urgency = limits->highest;
  if (auto ok = check_model(*limits, r.tenant, options.model_names); !ok) return ok;
  auto ok = check_claim(*limits, use_of(r.tenant),
                        {.tenant = r.tenant,
                         .urgency = *r.urgency,
                         .tokens = std::uint64_t{r.tokens_max} * r.micro_batches});
  if (!ok && ok.error().code == status::overloaded) ok.error().retry_after_ns = options.lease;
  return ok;
}

std::uint64_t core::state::rate_of(const session& s) const {
  const tenant_limits* limits = find_tenant(options.tenants, s.request.tenant);
  return limits == nullptr ? 0 : rate_of_each(*limits, use_of(s.request.tenant).sessions);
}

void core::state::on(const open_session& e, time_ns now) {
  auto request = check(e.request);
  if (request) {
    if (auto ok = admit(*request); !ok) request = unexpected_error(std::move(ok.error()));
  }
  if (!request) {
    switch (request.error().code) {
      case status::denied: ++refused.denied; break;
      case status::overloaded: ++refused.overloaded; break;
      case status::no_memory: ++refused.memory; break;
      default: break;
    }
    return answer(e.token, unexpected_error(std::move(request.error())));
  }
  if (!published) {
    error why = make_error(reason::not_ready, reason_for_clients());
    why.retry_after_ns = options.heartbeat_timeout;
    return answer(e.token, unexpected_error(std::move(why)));
  }
  if (sessions.size() + parked_opens.size() >= options.sessions_max) {
    ++refused.overloaded;
    return answer(
        e.token,
        no_credit(fmt::format("all {} sessions are in use", options.sessions_max), options.lease));
  }
  if (free_sources.size() <= parked_opens.size()) {
    ++refused.overloaded;
    return answer(e.token, no_credit(fmt::format("all {} sources are in use", options.sources_max),
                                     options.lease));
  }
  parked_opens.push_back(e);
  parked_opens.back().request = std::move(*request);
  open_parked(now);
  if (!disk_trouble.empty()) refuse_parked();
}

// Opens those for whom an id is reserved; the others wait for the record.
void core::state::open_parked(time_ns now) {
  std::size_t opened = 0;
  for (; opened < parked_opens.size() && next_session < durable.next_session; ++opened) {
    open_session& e = parked_opens[opened];
    MOETIER_ASSERT(!free_sources.empty());
    session s;
    s.id = session_id(next_session++);
    s.source = free_sources.front();
    free_sources.pop_front();
    s.request = std::move(e.request);
    s.opened_at = now;
    s.lease_until = now + options.lease;
    log(log_event::level::info, "session_opened",
        fmt::format("session {} source {} tenant {}", s.id.value, s.source.value, s.request.tenant),
        {.session = s.id});
    const auto at = sessions.emplace(s.id, std::move(s)).first;
    answer(e.token, grant_of(at->second));
  }
  parked_opens.erase(parked_opens.begin(),
                     parked_opens.begin() + static_cast<std::ptrdiff_t>(opened));
}

// Nobody waits for a disk that fails.
void core::state::refuse_parked() {
  for (const open_session& e : std::exchange(parked_opens, {})) {
    error why = make_error(reason::not_ready, k_disk_fails);
    why.retry_after_ns = k_second;
    answer(e.token, unexpected_error(std::move(why)));
  }
}

session_grant core::state::grant_of(const session& s) const {
  const deadline_class urgency = s.request.urgency.value_or(deadline_class::decode);
  const duration_ns deadline = urgency == deadline_class::decode    ? options.call_deadline
                               : urgency == deadline_class::prefill ? options.prefill_deadline
                                                                    : options.step_deadline;
  return {.session = s.id,
          .source = s.source,
          .tokens_max = s.request.tokens_max,
          .micro_batches = s.request.micro_batches,
          .top_k = s.request.top_k,
          .lease = options.lease,
          .call_deadline = deadline,
          .step_deadline = options.step_deadline,
          .urgency = urgency,
          .tokens_per_second = rate_of(s),
          .snapshot = published};
}

session* core::state::find_session(session_id id, incarnation_id incarnation) {
  const auto found = sessions.find(id);
  if (found == sessions.end() || found->second.request.incarnation != incarnation) return nullptr;
  return &found->second;
}

// --- resume, renew, close ---

void core::state::on(const resume_session& e, time_ns now) {
  if (find_session(e.session, e.incarnation) == nullptr && !starting && !collecting) {
    return answer(e.token, fail(reason::session_unknown, e.session.value));
  }
  if (parked_resumes.size() >= options.sessions_max) {
    return answer(e.token,
                  no_credit("too many sessions resume at once", options.heartbeat_timeout));
  }
  parked_resumes.push_back({e, now + options.attach_limit});
  answer_resumes(now);
}

// A resume waits until the workers have told what they hold; then it is granted or unknown.
void core::state::answer_resumes(time_ns now) {
  std::erase_if(parked_resumes, [&](const parked_resume& p) {
    const bool settled = !starting && !collecting && published;
    if (!settled && now < p.until) return false;
    session* s = find_session(p.asked.session, p.asked.incarnation);
    // Another tenant's is as good as none: nothing is told of it.
    if (s != nullptr && !p.asked.tenant.empty() && p.asked.tenant != s->request.tenant) s = nullptr;
    if (s != nullptr && published) {
      s->lease_until = now + options.lease;
      answer(p.asked.token, grant_of(*s));
    } else if (settled) {
      answer(p.asked.token, fail(reason::session_unknown, p.asked.session.value));
    } else {
      answer(p.asked.token, fail(reason::not_ready, "its workers have not come back yet"));
    }
    return true;
  });
}

void core::state::on(const renew_session& e, time_ns now) {
  if (session* s = find_session(e.session, e.incarnation)) {
    s->lease_until = now + options.lease;
    s->use = e.use;
  } else if (!starting && !collecting) {
    emit(session_ended{e.session, make_error(reason::session_unknown, e.session.value)});
  }
}

void core::state::on(const close_session& e, time_ns) {
  if (find_session(e.session, e.incarnation) == nullptr) {
    return answer_plain(e.token, fail(reason::session_unknown, e.session.value));
  }
  end_session(e.session, make_error(reason::session_closed, e.session.value));
  answer_plain(e.token, {});
}

void core::state::end_session(session_id id, error why) {
  session& s = sessions.at(id);
  if (s.attach_token) {
    answer_plain(*std::exchange(s.attach_token, std::nullopt), unexpected_error(why));
  }
  withdraw_attachment(s);
  free_sources.push_back(s.source);
  log(log_event::level::info, "session_ended", why.text, {.session = id});
  emit(session_ended{id, std::move(why)});
  sessions.erase(id);
}

void core::state::lapse_sessions(time_ns now) {
  std::vector<session_id> lapsed;
  for (auto& [id, s] : sessions) {
    if (collecting) s.lease_until = std::max(s.lease_until, now + options.lease);
    if (now > s.lease_until) lapsed.push_back(id);
    if (s.attach_token && now > s.attach_until) {
      std::uint16_t late = 0;
      for (const auto& [name, m] : members) {
        if (m.live() && !m.has_attached(s.source, s.attachment->incarnation)) late = m.id.value;
      }
      fail_attach(s, make_error(reason::attach_late, late, options.attach_limit / k_millisecond));
    } else if (s.attachment && now >= s.resend_at) {
      s.resend_at = now + options.heartbeat_timeout;
      for (const auto& [name, m] : members) {
        if (m.takes_sources() && !m.has_attached(s.source, s.attachment->incarnation)) {
          send(m, control::attach_source{durable.epoch, *s.attachment});
        }
      }
    }
  }
  for (const session_id id : lapsed) end_session(id, make_error(reason::lease_lapsed, id.value));
}

void core::state::answer_all(const error& why) {
  answer_adapter_requests(why);
  for (const open_session& e : std::exchange(parked_opens, {})) {
    answer(e.token, unexpected_error(why));
  }
  for (const parked_resume& p : std::exchange(parked_resumes, {})) {
    answer(p.asked.token, unexpected_error(why));
  }
  for (auto& [id, s] : sessions) {
    if (s.attach_token) {
      answer_plain(*std::exchange(s.attach_token, std::nullopt), unexpected_error(why));
    }
  }
}

}  // namespace moetier::coordinator
