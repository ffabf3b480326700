// Snapshots: when the picture that sources route by may change, and what it shows.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "eplb/plan_file.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::coordinator {
namespace {

constexpr std::size_t k_lost_texts_max = 8;

std::vector<std::byte> bytes_of(const std::vector<std::uint8_t>& v) {
  const auto* first = reinterpret_cast<const std::byte*>(v.data());
  return {first, first + v.size()};
}

}  // namespace

// Whether the workers that a start waits for are here. Masking one that is only slow to come back
// would disturb sources that never noticed the restart, so all get a detection time, and two when
// more than half are missing.
bool core::state::collected(time_ns now) const {
  std::size_t live_count = 0;
  bool attached = true;
  for (const auto& [name, m] : members) {
    // Awaited after a stop of this process: it comes back, or is lost when its time is over.
    if (m.live() && !m.link) return false;
    live_count += m.live() ? 1 : 0;
    attached = attached && (!m.live() || (has_every_source(m) && has_settled_adapters(m)));
  }
  // A worker that was cut off before the restart may lack sources or adapters that the others have.
  if (!attached && now - collecting_since < options.attach_limit) return false;
  if (live_count == members.size()) return true;
  if (live_count == 0) return false;
  const bool most = live_count * 2 >= members.size();
  return now - collecting_since > (most ? 1 : 2) * options.heartbeat_timeout;
}

bool core::state::is_shown_live(const member& m) const {
  return published && std::any_of(published->workers.begin(), published->workers.end(),
                                  [&](const transport::snapshot_worker& w) {
                                    return w.live && w.worker == m.id &&
                                           w.incarnation == m.told.incarnation;
                                  });
}

void core::state::publish_if_due(time_ns now) {
  if (ended || starting || !plan) return;
  // What a loss or a return changes shows only once its epoch is durable.
  if (epoch_wanted || (writing && writing->epoch != durable.epoch)) return;
  if (!published) {
    // R6: all workers of the decided plan are COMMITTED; those that died meanwhile are masked.
    const bool committing = std::any_of(members.begin(), members.end(), [](const auto& m) {
      return m.second.at == member_stage::committing;
    });
    const bool any =
        std::any_of(members.begin(), members.end(), [](const auto& m) { return m.second.live(); });
    if (collecting ? !collected(now) : (committing || !any)) return;
  } else {
    std::size_t same = 0;
    for (const transport::snapshot_worker& shown : published->workers) {
      const int span = plan->span_index(shown.worker);
      const member& m = members.at(plan->spans()[static_cast<std::size_t>(span)].name);
      const bool unchanged =
          m.live() == shown.live && (!m.live() || m.told.incarnation == shown.incarnation);
      same += unchanged ? 1 : 0;
    }
    if (same == published->workers.size() && published->adapters == listed_adapters()) return;
  }
  if (!plan_units) plan_units = units_of_plan_file();
  published = make_snapshot();
  count_replicas();
  if (std::exchange(collecting, false)) {
    for (const auto& [name, m] : members) {
      if (m.live()) end_sessions_without(m);
    }
    for (auto& [id, s] : sessions) s.lease_until = std::max(s.lease_until, now + options.lease);
    for (auto& [name, m] : members) {  // too late for the start's epoch: taken in by one of its own
      if (m.at != member_stage::committing) continue;
      m.at = member_stage::admitting;
      m.admission = {};
      epoch_wanted = true;
    }
  }
  note_recoveries(now);
  emit(publish_snapshot{published});
  log(log_event::level::info, "snapshot_published",
      fmt::format("generation {} revision {}.{}, {} experts without a live replica",
                  durable.generation.value, published->shares.revision().epoch.value,
                  published->shares.revision().counter, lost_experts));
}

// A restarted coordinator may have been given another file than the one its plan came from.
std::vector<std::vector<std::uint32_t>> core::state::units_of_plan_file() {
  std::vector<std::vector<std::uint32_t>> even(plan->layers().size());
  if (options.placement_file_text.empty()) return even;
  auto file = eplb::read_placed_plan(
      options.placement_file_text, options.placement_file_name,
      {options.model.experts, options.model.moe_layers, plan->spans(), options.model.fingerprint});
  if (!file || !(file->placed == *plan)) {
    log(log_event::level::warn, "plan_file_unused",
        fmt::format("{} is not the plan that is served and that the durable record keeps: it is "
                    "left out, replicas share evenly; a new coordinator.state_dir starts with it",
                    options.placement_file_name));
    return even;
  }
  return std::move(file->units);
}

transport::snapshot_ptr core::state::make_snapshot() const {
  auto s = std::make_shared<transport::routing_snapshot>();
  s->epoch = durable.epoch;
  s->generation = durable.generation;
  s->plan = durable.plan;
  s->model = options.model;
  s->routing = {options.model.routing, options.model.experts, options.model.top_k};
  s->tables = options.tables;
  s->shared_experts = durable.shared_experts;
  MOETIER_ASSERT(resolved);
  s->resolution_id = resolved->resolution_id;
  s->backend = resolved->winner;
  s->exact_allowed = gives_exact_rows();
  s->lora = runs_adapters();
  if (s->lora) s->adapters = listed_adapters();
  s->placement = *plan;
  std::vector<bool> live;
  for (const auto& span : plan->spans()) {
    const member& m = members.at(span.name);
    MOETIER_ASSERT(!m.live() || m.committed);  // R6
    live.push_back(m.live());
    s->workers.push_back({m.id, m.told.incarnation, m.live(), bytes_of(m.told.address)});
    if (m.live()) s->carrier = m.told.carrier;
  }
  if (published && s->carrier.empty()) s->carrier = published->carrier;  // nobody is left
  // A revision is (epoch, counter): a restarted coordinator has a higher epoch and reissues none.
  shares_revision revision{durable.epoch, 0};
  if (published && published->shares.revision().epoch == durable.epoch) {
    revision.counter = published->shares.revision().counter + 1;
  }
  s->shares = eplb::shares::over_live(*plan, *plan_units, live, revision);
  return s;
}

void core::state::count_replicas() {
  unreplicated_experts = 0;
  lost_experts = 0;
  lost_texts.clear();
  for (std::size_t layer = 0; layer < plan->layers().size(); ++layer) {
    for (std::uint32_t e = 0; e < plan->experts(); ++e) {
      const auto replicas = plan->replicas(layer, e);
      const auto live = std::count_if(replicas.begin(), replicas.end(), [&](std::uint32_t d) {
        return published->workers[plan->span_of(d)].live;
      });
      unreplicated_experts += live == 1 ? 1 : 0;
      if (live != 0) continue;
      if (++lost_experts <= k_lost_texts_max) {
        lost_texts.push_back(fmt::format("layer {} expert {} has no live replica",
                                         plan->layers()[layer].layer.value, e));
      }
    }
  }
  if (lost_experts > k_lost_texts_max) {
    lost_texts.push_back(
        fmt::format("and {} more experts without one", lost_experts - k_lost_texts_max));
  }
}

std::vector<std::string> core::state::reasons_not_ready() const {
  if (ended) return {"it is shutting down"};
  if (starting && !disk_trouble.empty()) return {k_disk_fails};
  if (starting) return {"the durable record is being written"};
  if (published) return lost_texts;
  std::size_t here = 0;
  std::size_t loaded = 0;
  for (const auto& [name, m] : members) {
    here += m.link ? 1 : 0;
    loaded += m.at >= member_stage::verified ? 1 : 0;
  }
  std::vector<std::string> reasons;
  if (!disk_trouble.empty()) reasons.emplace_back(k_disk_fails);
  const std::size_t wanted = plan ? members.size() : options.workers_expected;
  if (!plan_problem.empty()) reasons.push_back(plan_problem);
  if (here < wanted) {
    reasons.push_back(fmt::format("waiting for {} of {} workers", wanted - here, wanted));
  } else if (loaded < wanted && !plan_failed) {
    reasons.push_back(fmt::format("{} of {} workers load weights", wanted - loaded, wanted));
  } else if (reasons.empty()) {
    reasons.push_back("the plan is being committed");
  }
  return reasons;
}

// Why a plan cannot be made is told in words of workers, machines and files, which are no client's.
std::string core::state::reason_for_clients() const {
  const auto reasons = reasons_not_ready();
  if (reasons.empty()) return "it is starting";
  return reasons.front() == plan_problem ? k_plan_fails : reasons.front();
}

}  // namespace moetier::coordinator
