// Attachments: a session's source and its place in every worker's attach table. A worker is routed
// to only when it has every source, and a place is given on only when its detach is on every link.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::coordinator {

expected<void> core::state::check(const session& s, const attach_session& e) const {
  const transport::source_shape& shape = e.shape;
  const auto within = [](const char* name, std::uint64_t given,
                         std::uint64_t most) -> expected<void> {
    if (given == 0)
      return fail(reason::invalid_argument, name, given, fmt::format("1 to {}", most));
    if (given > most) return fail(reason::limit_exceeded, name, given, most);
    return {};
  };
  const model_description& model = options.model;
  const std::uint32_t positions_max =
      s.request.top_k + (s.request.shared_experts ? model.shared.count : 0);
  // A token whose weight is on the input sends its shared experts a row of their own.
  const bool second_rows = s.request.shared_experts && model.weight_at == weight_point::input;
  const std::uint64_t rows_max = std::uint64_t{s.request.tokens_max} * (second_rows ? 2 : 1);
  const std::uint64_t stride_max =
      transport::padded_stride(std::size_t{options.model.hidden_size} * sizeof(float));
  for (const auto& checked : {within("rows_max", shape.rows_max, rows_max),
                              within("hidden_stride", shape.hidden_stride, stride_max),
                              within("top_k", shape.top_k, positions_max),
                              within("return_stride", shape.return_stride, stride_max),
                              within("return_rows_max", shape.return_rows_max,
                                     std::uint64_t{shape.rows_max} * shape.top_k),
                              within("banks", shape.banks, 4),
                              within("address bytes", e.address.size(), k_address_bytes_max)}) {
    if (!checked) return checked;
  }
  return {};
}

void core::state::on(const attach_session& e, time_ns now) {
  session* s = find_session(e.session, e.incarnation);
  if (s == nullptr) return answer_plain(e.token, fail(reason::session_unknown, e.session.value));
  if (auto ok = check(*s, e); !ok) return answer_plain(e.token, std::move(ok));
  if (!published) {
    return answer_plain(e.token, fail(reason::not_ready, "no plan is in service"));
  }
  const tenant_limits* limits = find_tenant(options.tenants, s->request.tenant);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(e.address.data());
  control::source_attachment wanted{.source = s->source,
                                    .session = s->id,
                                    .incarnation = e.incarnation,
                                    .rows_max = e.shape.rows_max,
                                    .hidden_stride = e.shape.hidden_stride,
                                    .top_k = e.shape.top_k,
                                    .return_stride = e.shape.return_stride,
                                    .return_rows_max = e.shape.return_rows_max,
                                    .banks = e.shape.banks,
                                    .weight = limits == nullptr ? 1 : limits->weight,
                                    .urgency = s->request.urgency.value_or(deadline_class::decode),
                                    .terms = {.tokens_max = s->request.tokens_max,
                                              .micro_batches = s->request.micro_batches,
                                              .top_k = s->request.top_k,
                                              .shared_experts = s->request.shared_experts},
                                    .tenant = s->request.tenant,
                                    .address = {bytes, bytes + e.address.size()}};
  if (s->attach_token || (s->attachment && *s->attachment != wanted)) {
    return answer_plain(e.token,
                        fail(reason::sequence, "attach", "the session is attached already"));
  }
  s->lease_until = std::max(s->lease_until, now + options.lease);
  s->attach_token = e.token;
  s->attach_until = now + options.attach_limit;
  s->resend_at = now + options.heartbeat_timeout;
  if (!s->attachment) {
    s->attachment = std::move(wanted);
    for (const auto& [name, m] : members) {
      if (m.takes_sources()) send(m, control::attach_source{durable.epoch, *s->attachment});
    }
  }
}

void core::state::hear(member& from, const control::source_attached& m, time_ns now) {
  const auto found = std::find_if(sessions.begin(), sessions.end(), [&](const auto& s) {
    return s.second.attachment && s.second.source == m.source &&
           s.second.attachment->incarnation == m.incarnation;
  });
  if (found == sessions.end()) {  // it ended meanwhile
    ++stale_refused;
    if (m.accepted) send(from, control::detach_source{durable.epoch, m.source, m.incarnation});
    return;
  }
  if (m.gone) {
    // It dropped rows of this source when an earlier coordinator began to end the session.
    return end_session(found->first, make_error(reason::attach_refused, from.id.value));
  }
  if (!m.accepted) {
    log(log_event::level::error, "attach_refused",
        fmt::format("worker {} source {}: {}", from.name, m.source.value, m.text),
        {.worker = from.name, .session = found->first});
    // One that is attached elsewhere already is asked for again until the limit.
    if (found->second.attach_token) {
      fail_attach(found->second, make_error(reason::attach_refused, from.id.value));
    }
    return;
  }
  from.attached[m.source] = m.incarnation;
  try_serve(from, now);
}

// An attach is done when every worker that is routed to has confirmed it; one lost meanwhile does
// not count once the snapshot without it is out.
void core::state::finish_attaches() {
  for (auto& [id, one] : sessions) {
    session& s = one;  // clang 14 lets no lambda capture a binding
    if (!s.attach_token) continue;
    const bool done = std::all_of(members.begin(), members.end(), [&](const auto& m) {
      return (!m.second.live() && !is_shown_live(m.second)) ||
             m.second.has_attached(s.source, s.attachment->incarnation);
    });
    if (done) answer_plain(*std::exchange(s.attach_token, std::nullopt), {});
  }
}

void core::state::fail_attach(session& s, error why) {
  answer_plain(*std::exchange(s.attach_token, std::nullopt), unexpected_error(std::move(why)));
  withdraw_attachment(s);
}

// Tells every worker that may have it: links are ordered, so the place is free for another.
void core::state::withdraw_attachment(session& s) {
  if (!s.attachment) return;
  for (auto& [name, m] : members) {
    send(m, control::detach_source{durable.epoch, s.source, s.attachment->incarnation});
    m.attached.erase(s.source);
  }
  s.attachment.reset();
}

bool core::state::has_every_source(const member& m) const {
  return std::all_of(sessions.begin(), sessions.end(), [&](const auto& s) {
    return !s.second.attachment ||
           m.has_attached(s.second.source, s.second.attachment->incarnation);
  });
}

// A worker drops rows of a source that it has not got, and the source's banks there with them: such
// a session is told to open anew. One that is being attached is judged by its own deadline.
void core::state::end_sessions_without(const member& m) {
  std::vector<session_id> gone;
  for (const auto& [id, s] : sessions) {
    if (s.attachment && !s.attach_token && !m.has_attached(s.source, s.attachment->incarnation)) {
      gone.push_back(id);
    }
  }
  for (const session_id id : gone) end_session(id, make_error(reason::attach_refused, m.id.value));
}

void core::state::send_missing_sources(member& to) {
  for (const auto& [id, s] : sessions) {
    if (s.attachment && !to.has_attached(s.source, s.attachment->incarnation)) {
      send(to, control::attach_source{durable.epoch, *s.attachment});
    }
  }
}

// What a worker has attached, against what there should be. After a start this is where sessions
// come from; ids are never reused, so of two at one place the larger is the newer.
void core::state::learn_sources(member& from, time_ns now) {
  for (const control::source_attachment& told : from.told.sources) {
    const auto known = sessions.find(told.session);
    bool current = known != sessions.end() && known->second.attachment == told;
    if (!current && collecting && known == sessions.end() && told.session.value < next_session &&
        told.source.value < options.sources_max) {
      const auto holder = std::find_if(sessions.begin(), sessions.end(), [&](const auto& s) {
        return s.second.source == told.source;
      });
      if (holder != sessions.end() && holder->first < told.session) {
        const session_id older = holder->first;
        end_session(older, make_error(reason::session_closed, older.value));
      }
      const auto place = std::find(free_sources.begin(), free_sources.end(), told.source);
      if (place != free_sources.end()) {
        free_sources.erase(place);
        session s;
        s.id = told.session;
        s.source = told.source;
        s.request.tenant = told.tenant;
        s.request.incarnation = told.incarnation;
        s.request.tokens_max = told.terms.tokens_max;
        s.request.micro_batches = told.terms.micro_batches;
        s.request.top_k = told.terms.top_k;
        s.request.shared_experts = told.terms.shared_experts;
        s.request.urgency = told.urgency;
        s.opened_at = now;
        s.lease_until = now + options.lease;
        s.attachment = told;
        s.resend_at = now + options.heartbeat_timeout;
        sessions.emplace(s.id, std::move(s));
        current = true;
        for (auto& [name, m] : members) {
          if (&m != &from && m.takes_sources()) {
            send(m, control::attach_source{durable.epoch, told});
          }
        }
      }
    }
    if (current) {
      from.attached[told.source] = told.incarnation;
    } else {
      send(from, control::detach_source{durable.epoch, told.source, told.incarnation});
    }
  }
}

}  // namespace moetier::coordinator
