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
  v.incarnation = m.told.incarnation;
  v.first_slot = m.first_slot;
  v.slots = m.slots;
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
                          .age = now - held.opened_at,
                          .lease_left = held.lease_until > now ? held.lease_until - now : 0});
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
  v.stale_commands_refused = s.stale_refused;
  v.window = s.window.last();
  v.snapshot = s.published;
  v.resolved = s.resolved;
  return v;
}

}  // namespace moetier::coordinator
