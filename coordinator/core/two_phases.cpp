// The two phases for one member: PREPARE, PREPARED, (an epoch that takes it in), COMMIT, COMMITTED.
// The same road for the first plan and for a process that comes back to its place.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::coordinator {
namespace {

constexpr duration_ns k_resend_max = 10 * k_second;

}  // namespace

void core::state::ask(member& m, time_ns now) {
  m.at = member_stage::preparing;
  m.asked = durable.epoch;
  m.since = now;
  m.resend_after = options.heartbeat_timeout;
  m.resend_at = now + m.resend_after;
  send_prepare(m);
}

void core::state::send_prepare(member& m) {
  const bool first = !plan;
  MOETIER_ASSERT(plan || attempt);
  const std::string& report = first ? attempt->resolution : durable.resolution;
  send(m, control::prepare{durable.epoch,
                           first ? k_first_generation : durable.generation,
                           first ? attempt->hash : durable.plan,
                           m.told.incarnation,
                           first ? attempt->bytes : durable.placement,
                           {report.begin(), report.end()},
                           first ? attempt->shared_experts : durable.shared_experts});
}

void core::state::hear(member& from, const control::prepared& m, time_ns now) {
  const generation_number generation = plan ? durable.generation : k_first_generation;
  const bool asked = plan || (attempt && attempt->asked);
  if (from.at != member_stage::preparing || !asked || m.generation != generation ||
      m.plan != (plan ? durable.plan : attempt->hash) || m.epoch < from.asked) {
    ++stale_refused;
    return;
  }
  const eplb::placement& p = plan ? *plan : attempt->placement;
  const auto span = static_cast<std::size_t>(p.span_index(from.id));
  if (m.checksums.size() != p.layers().size() * std::size_t{from.slots}) {
    return quarantine(from, "its checksums are not one per slot");
  }
  for (std::size_t layer = 0; layer < p.layers().size(); ++layer) {
    for (std::uint32_t local = 0; local < from.slots; ++local) {
      const bool empty = p.layers()[layer].experts[p.first_dense(span) + local] < 0;
      if (empty != (m.checksums[layer * from.slots + local] == 0)) {
        return quarantine(from, "a slot is filled that the plan leaves empty, or the reverse");
      }
    }
  }
  if ((m.shared_digest != 0) != ((plan ? durable.shared_experts : attempt->shared_experts) != 0)) {
    return quarantine(from, "it holds shared experts that the plan does not, or the reverse");
  }
  from.checksums = m.checksums;
  from.shared_digest = m.shared_digest;
  accept_verified(from, now);
}

void core::state::accept_verified(member& m, time_ns now) {
  m.since = now;
  if (!plan) {
    m.at = member_stage::verified;
    return;
  }
  if (m.checksums != reference_of(m)) {
    return quarantine(m, "its checksums differ from the committed plan's");
  }
  if (m.shared_digest != durable.shared_digest) {
    return quarantine(m, "its shared experts differ from the committed plan's");
  }
  if (collecting) return begin_commit(m, now);  // the start's own epoch takes it in
  m.at = member_stage::admitting;
  m.admission = {};
  epoch_wanted = true;
}

// R4: the decision is durable. Sources are attached before anybody routes here.
void core::state::begin_commit(member& m, time_ns now) {
  MOETIER_ASSERT(plan && durable.generation.value != 0 && !starting);
  m.at = member_stage::committing;
  m.since = now;
  m.resend_after = options.heartbeat_timeout;
  m.resend_at = now + m.resend_after;
  send_missing_sources(m);
  send_missing_adapters(m);
  send_commit(m);
}

void core::state::send_commit(member& m) {
  send(m, control::commit{durable.epoch, durable.generation, durable.plan, m.told.incarnation});
}

void core::state::hear(member& from, const control::committed& m, time_ns now) {
  if (from.at != member_stage::committing || m.generation != durable.generation ||
      m.plan != durable.plan) {
    ++stale_refused;
    return;
  }
  from.committed = true;
  try_serve(from, now);
}

void core::state::try_serve(member& m, time_ns now) {
  if (m.at != member_stage::committing || !m.committed) return;
  if (!has_every_source(m) && now - m.since < options.attach_limit) return;
  // One that cannot have an adapter serves without: the adapter goes off the list instead.
  if (!has_settled_adapters(m) && now - m.since < options.adapter_limit) return;
  end_sessions_without(m);
  m.at = member_stage::serving;
  m.since = now;
}

void core::state::hear(member& from, const control::refused& m, time_ns now) {
  using why = control::refused::why;
  if (m.epoch > durable.epoch) return meet_epoch(m.epoch);
  if (m.cause == why::stale_epoch) return;  // an old command of ours arrived late
  const bool on_its_way = from.at == member_stage::preparing || from.at == member_stage::committing;
  const generation_number generation = plan ? durable.generation : k_first_generation;
  if (!on_its_way || m.generation != generation) return;
  if (m.epoch < from.asked) {  // of an attempt that was given up: what is asked now never ran there
    ++stale_refused;
    return;
  }
  switch (m.cause) {
    case why::unknown_generation:  // it has lost what it had prepared
      if (from.at == member_stage::committing) ask(from, now);
      return;
    case why::prepare_failed:
      if (!plan) return try_another(from, m.text);
      return quarantine(from, m.text);
    case why::mismatch:
    case why::load_failed: return quarantine(from, m.text);
    case why::busy:
    case why::stale_epoch:
    case why::join: return;  // asked again in a while
  }
}

// Links lose nothing, but a process may be replaced behind one; asking again changes nothing.
void core::state::resend(time_ns now) {
  std::vector<std::string> late;
  for (auto& [name, m] : members) {
    if (m.at != member_stage::preparing && m.at != member_stage::committing) continue;
    if (m.at == member_stage::preparing && now - m.since > options.prepare_limit) {
      late.push_back(name);
      continue;
    }
    if (now < m.resend_at) continue;
    m.resend_after = std::min(2 * m.resend_after, k_resend_max);
    m.resend_at = now + m.resend_after;
    if (m.at == member_stage::preparing) {
      send_prepare(m);
    } else {
      send_commit(m);
    }
  }
  for (const std::string& name : late) {
    if (!members.contains(name)) continue;
    quarantine(members.at(name),
               fmt::format("it has not loaded the plan within {} s (coordinator.load_timeout)",
                           options.prepare_limit / k_second));
  }
}

// The record's checksums of a member's slots, by (layer index, local slot).
std::vector<std::uint64_t> core::state::reference_of(const member& m) const {
  const auto span = static_cast<std::size_t>(plan->span_index(m.id));
  std::vector<std::uint64_t> all;
  all.reserve(plan->layers().size() * m.slots);
  for (std::size_t layer = 0; layer < plan->layers().size(); ++layer) {
    const auto first =
        durable.checksums.begin() +
        static_cast<std::ptrdiff_t>(layer * plan->dense_slots() + plan->first_dense(span));
    all.insert(all.end(), first, first + m.slots);
  }
  return all;
}

}  // namespace moetier::coordinator
