#include <algorithm>

#include "coordinator/core/state.hpp"

namespace moetier::coordinator {
namespace {

worker_state state_of(const member& m) {
  switch (m.at) {
    case member_stage::lost: return worker_state::lost;
    case member_stage::joined: return worker_state::joining;
    case member_stage::preparing:
    case member_stage::verified:
    case member_stage::admitting:
    case member_stage::committing: return worker_state::preparing;
    case member_stage::serving: break;
  }
  return m.leaving ? worker_state::leaving : worker_state::serving;
}

worker_view view_of(const member& m, std::size_t layers, time_ns now) {
  worker_view v;
  v.worker = m.id;
  v.name = m.name;
  v.state = state_of(m);
  v.suspected = m.suspected && m.live();
  v.incarnation = m.told.incarnation;
  v.first_slot = m.first_slot;
  v.slots = m.slots;
  v.environment = m.environment;
  v.heartbeat_age = now - std::min(m.heard_at, now);
  v.rows_total = m.rows_total;
  v.calls_total = m.calls_total;
  v.counts.assign(layers, std::vector<std::uint64_t>(m.slots, 0));
  if (m.counts.size() == layers * m.slots) {
    for (std::size_t i = 0; i < m.counts.size(); ++i)
      v.counts[i / m.slots][i % m.slots] = m.counts[i];
  }
  return v;
}

}  // namespace

std::string_view worker_state_name(worker_state s) noexcept {
  switch (s) {
    case worker_state::joining: return "joining";
    case worker_state::preparing: return "preparing";
    case worker_state::serving: return "serving";
    case worker_state::leaving: return "leaving";
    case worker_state::lost: return "lost";
  }
  return "lost";
}

std::string_view loss_cause_name(loss_cause c) noexcept {
  switch (c) {
    case loss_cause::link_closed: return "link_closed";
    case loss_cause::silent: return "silent";
    case loss_cause::stuck: return "stuck";
    case loss_cause::device: return "device";
    case loss_cause::refused: return "refused";
  }
  return "link_closed";
}

tier_view core::view(time_ns now) const {
  const state& s = *state_;
  tier_view v;
  v.epoch = s.durable.epoch;
  v.generation = s.durable.generation;
  v.plan = s.durable.plan;
  if (s.published) v.revision = s.published->shares.revision();
  v.not_ready_reasons = s.reasons_not_ready();
  v.ready = s.published && v.not_ready_reasons.empty();
  const std::size_t layers = s.plan ? s.plan->layers().size() : 0;
  for (const auto& [name, m] : s.members) {
    v.workers.push_back(view_of(m, layers, now));
    if (s.resolved) v.workers.back().backend = s.resolved->winner;
  }
  for (const auto& [id, held] : s.sessions) {
    v.sessions.push_back({.session = id,
                          .source = held.source,
                          .tenant = held.request.tenant,
                          .thin = held.request.thin,
                          .attached = held.attachment && !held.attach_token,
                          .use = held.use,
                          .age = now - held.opened_at,
                          .lease_left = held.lease_until > now ? held.lease_until - now : 0,
                          .urgency = held.request.urgency.value_or(deadline_class::decode),
                          .tokens_per_second = s.rate_of(held)});
  }
  v.runs_adapters = s.runs_adapters();
  for (const auto& [id, a] : s.adapters) {
    adapter_view shown{
        .adapter = id,
        .name = a.held.name,
        .path = a.held.path,
        .listed = s.published && std::ranges::binary_search(s.published->adapters, id),
        .workers = {},
        .problem = a.problem};
    for (const auto& [name, m] : s.members) {
      if (m.holds_adapter(id)) shown.workers.push_back(name);
    }
    v.adapters.push_back(std::move(shown));
  }
  v.unreplicated_experts = s.unreplicated_experts;
  v.lost_experts = s.lost_experts;
  v.refused = s.refused;
  v.stale_commands_refused = s.stale_refused;
  v.beats_without_progress = s.beats_without_progress;
  v.late_reports = s.late_reports;
  v.suspicions = s.suspicions;
  v.suspects_itself = s.suspects_itself;
  for (const auto& l : s.losses) v.losses.push_back(l.shown);
  v.gone_by_cause = s.gone_by_cause;
  v.detections = s.detections.read();
  v.recoveries = s.recoveries.read();
  v.events.assign(s.recent.begin(), s.recent.end());
  for (event_view& e : v.events) e.age = now - std::min(e.age, now);
  v.window = s.window.last();
  v.snapshot = s.published;
  v.resolved = s.resolved;
  return v;
}

}  // namespace moetier::coordinator
