#include "actors/http/coordinator_probe.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "actors/http/metric_text.hpp"
#include "actors/http/transport_families.hpp"
#include "coordinator/core/tier_balance.hpp"
#include "schemas/base/time.hpp"

namespace moetier::http {
namespace {

using coordinator::worker_state;

double seconds(duration_ns d) { return static_cast<double>(d) / static_cast<double>(k_second); }

void add_members(metric_text& m, const coordinator::tier_view& view) {
  constexpr std::array states{worker_state::joining, worker_state::preparing, worker_state::serving,
                              worker_state::leaving, worker_state::lost};
  m.gauge("coordinator_workers", "Workers by state.");
  for (const worker_state s : states) {
    std::uint64_t count = 0;
    for (const auto& w : view.workers) count += w.state == s ? 1 : 0;
    m.sample(count, {{"state", std::string(worker_state_name(s))}});
  }
  std::uint64_t observed = 0;
  std::uint64_t agreed = 0;
  for (const auto& w : view.workers) observed += w.state != worker_state::lost ? 1 : 0;
  if (view.snapshot) {
    for (const auto& w : view.snapshot->workers) agreed += w.live ? 1 : 0;
  }
  m.gauge("coordinator_members",
          "Workers that answer (observed) and workers of the epoch (agreed).");
  m.sample(observed, {{"view", "observed"}});
  m.sample(agreed, {{"view", "agreed"}});
  m.gauge("coordinator_sessions", "Open sessions.");
  m.sample(view.sessions.size());
  m.gauge("coordinator_heartbeat_age_seconds", "Since the last good beat of a worker.");
  for (const auto& w : view.workers) {
    m.sample(seconds(w.heartbeat_age), {{"worker", std::to_string(w.worker.value)}});
  }
  m.gauge("coordinator_suspected_workers", "Workers of the epoch that sources are told to avoid.");
  m.sample(static_cast<std::uint64_t>(
      std::ranges::count_if(view.workers, [](const auto& w) { return w.suspected; })));
  m.gauge("coordinator_suspects_itself", "1 while most workers are silent together.");
  m.sample(view.suspects_itself ? 1.0 : 0.0);
}

void add_detection(metric_text& m, const coordinator::tier_view& view) {
  m.histogram("coordinator_detection_seconds",
              "From a lost worker's last good beat to the decision to leave it out.");
  m.sample(view.detections);
  m.histogram("coordinator_recovery_seconds",
              "From a lost worker's last good beat until sources were told to do without it.");
  m.sample(view.recoveries);
  m.counter("coordinator_losses_total",
            "Processes of workers that went without saying so; refused: their weights failed.");
  for (const coordinator::loss_cause cause : coordinator::k_loss_causes) {
    m.sample(view.gone_by_cause[static_cast<std::size_t>(cause)],
             {{"cause", std::string(loss_cause_name(cause))}});
  }
  m.counter("coordinator_suspicions_total", "Workers that became suspect.");
  m.sample(view.suspicions);
  m.counter("coordinator_missed_beats_total", "Beats that showed no progress.");
  m.sample(view.beats_without_progress);
  m.counter("coordinator_late_reports_total", "Calls that ended in TIMEOUT, as sources told.");
  m.sample(view.late_reports);
}

// One layer kind: all MoE layers of a model are resolved alike.
void add_resolution(metric_text& m, const coordinator::tier_view& view) {
  if (view.resolved == nullptr) return;
  const auto& r = *view.resolved;
  const std::string why = r.degraded() && !r.rejected.empty()
                              ? std::string(resolution::reject_name(r.rejected.front().why))
                              : "none";
  m.gauge("coordinator_resolution_info",
          "1 for the backend that was resolved; reason: why degraded.");
  m.sample(1.0, {{"layer", "all"},
                 {"winner", r.winner},
                 {"selected_by", std::string(resolution::word_of(r.selected))},
                 {"reason", why}});
}

void add_balance(metric_text& m, const coordinator::tier_view& view) {
  if (view.snapshot == nullptr || view.window == nullptr) return;
  using coordinator::layer_balance;
  const auto balance = coordinator::balance_of(*view.snapshot, *view.window);
  const auto realised = balance.over(&layer_balance::realised);
  const auto planned = balance.over(&layer_balance::planned);
  const auto optimal = balance.over(&layer_balance::optimal);
  m.gauge("coordinator_balancedness_ratio",
          "Mean load of the live workers over the largest, by layer, of the last window.");
  m.sample(planned.mean, {{"kind", "planned"}, {"over", "mean"}});
  m.sample(planned.worst, {{"kind", "planned"}, {"over", "worst"}});
  m.sample(realised.mean, {{"kind", "realised"}, {"over", "mean"}});
  m.sample(realised.worst, {{"kind", "realised"}, {"over", "worst"}});
  m.gauge("coordinator_optimal_ratio",
          "Least load of the fullest worker that any placement reaches over the realised one.");
  m.sample(optimal.mean, {{"over", "mean"}});
  m.sample(optimal.worst, {{"over", "worst"}});
  constexpr std::size_t k_layer_series_max = 120;
  if (balance.layers.size() > k_layer_series_max) return;
  m.gauge("coordinator_layer_balancedness_ratio", "Realised balancedness of a layer, as above.");
  for (const layer_balance& l : balance.layers) {
    m.sample(l.realised, {{"layer", std::to_string(l.layer.value)}});
  }
}

void add_rpc(metric_text& m, const coordinator_counters& counters) {
  m.histogram("coordinator_rpc_seconds", "RPC methods; forward waits for the workers.");
  for (std::size_t kind = 0; kind < coordinator::k_rpc_method_kinds; ++kind) {
    m.sample(counters.rpc.methods[kind],
             {{"method", std::string(coordinator::rpc_method_name(kind))}});
  }
  m.counter("coordinator_rpc_errors_total", "RPC calls that ended in an error, by its kind.");
  for (std::size_t i = 0; i < coordinator::k_refusals; ++i) {
    const auto why = static_cast<coordinator::refusal>(i);
    m.sample(counters.rpc.refused[i], {{"reason", std::string(refusal_name(why))}});
  }
}

// The gateway is a source, the only one that lives here.
void add_source(metric_text& m, const coordinator::gateway::reading& gateway) {
  const client::source_reading& s = gateway.source;
  m.histogram("source_step_seconds", "Steps that failed nothing.");
  m.sample(s.step);
  m.histogram("source_round_trip_seconds",
              "A call's parts: route and send, wire both ways, wait for the worker, sum.");
  for (std::size_t p = 0; p < client::k_round_parts; ++p) {
    m.sample(s.parts[p],
             {{"part", std::string(round_part_name(static_cast<client::round_part>(p)))}});
  }
  m.counter("source_tickets_total", "Calls by how they ended.");
  for (std::size_t i = 0; i < client::k_ticket_ends.size(); ++i) {
    std::string name(status_name(client::k_ticket_ends[i]));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    m.sample(s.tickets[i], {{"status", std::move(name)}});
  }
  m.counter("source_replays_total", "Calls that were sent again, to another replica.");
  m.sample(s.replays);
  m.counter("source_invalid_route_total", "Calls refused because a row could not be routed.");
  for (std::size_t f = 0; f < client::k_route_faults; ++f) {
    m.sample(s.route_faults[f],
             {{"cause", std::string(route_fault_name(static_cast<client::route_fault>(f)))}});
  }
  m.gauge("gateway_held_bytes",
          "Thin calls that are here, rows and answers; gateway.memory bounds them.");
  m.sample(gateway.bytes_held);
  transport::carrier_counters carrier = gateway.carrier;
  carrier.stall_ns += s.stall;
  add_transport_families(m, carrier);
}

}  // namespace

std::string coordinator_metrics(const coordinator::tier_view& view,
                                const coordinator_counters& counters) {
  metric_text m;
  add_process_families(m, counters.log_lines_dropped);
  add_members(m, view);
  add_detection(m, view);
  add_resolution(m, view);
  add_border(m, counters.border);
  m.gauge("coordinator_epoch", "Number of the committed set of workers.");
  m.sample(view.epoch.value);
  m.gauge("coordinator_generation", "Number of the committed plan; 0 = none yet.");
  m.sample(view.generation.value);
  m.gauge("coordinator_ready", "1 while every expert has a live replica.");
  m.sample(view.ready ? 1.0 : 0.0);
  m.gauge("coordinator_unreplicated_experts", "Experts of a layer with exactly one live replica.");
  m.sample(view.unreplicated_experts);
  m.gauge("coordinator_lost_experts", "Experts of a layer without a live replica.");
  m.sample(view.lost_experts);
  m.counter("coordinator_refused_total", "Sessions and calls that were not admitted.");
  m.sample(view.refused.denied, {{"reason", "denied"}});
  m.sample(view.refused.overloaded, {{"reason", "session_limit"}});
  m.sample(view.refused.memory, {{"reason", "memory"}});
  m.sample(counters.calls_overloaded, {{"reason", "call_limit"}});
  m.counter("coordinator_stale_commands_total", "Messages of older epochs or incarnations.");
  m.sample(view.stale_commands_refused);
  m.gauge("coordinator_mailbox_depth", "Events on their way to the coordinator's actor.");
  m.sample(counters.mailbox_depth);
  if (counters.io_thread_cpu_seconds) {
    m.counter("coordinator_io_thread_cpu_seconds_total",
              "Processor time of the actors' I/O thread.");
    m.sample(*counters.io_thread_cpu_seconds);
  }
  add_balance(m, view);
  add_rpc(m, counters);
  if (counters.gateway) add_source(m, *counters.gateway);
  return m.text();
}

}  // namespace moetier::http
