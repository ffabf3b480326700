#include "coordinator/rpc/tier_document.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "coordinator/rpc/layer_load.hpp"
#include "eplb/plan_file.hpp"
#include "schemas/resolution/documents.hpp"

namespace moetier::coordinator {
namespace {

using json = nlohmann::ordered_json;

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::string text_of(const json& document) {
  // Names come from configuration: what is no UTF-8 in them must not throw here.
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

json identity(const char* schema, const tier_view& view) {
  return {{"schema", schema},
          {"epoch", view.epoch.value},
          {"generation", view.generation.value},
          {"plan_hash", hex(view.plan.value)},
          {"shares_revision",
           {{"epoch", view.revision.epoch.value}, {"counter", view.revision.counter}}}};
}

const char* level_name(log_event::level level) noexcept {
  switch (level) {
    case log_event::level::debug: return "debug";
    case log_event::level::info: return "info";
    case log_event::level::warn: return "warn";
    case log_event::level::error: return "error";
  }
  return "info";
}

json load_of(const tier_view& view) {
  json layers = json::array();
  for (const layer_load& l : layer_loads(view)) {
    json shown{{"layer", l.layer.value}, {"rows", l.rows}};
    if (l.balancedness != 0) {
      shown["balancedness"] = l.balancedness;
      shown["hottest_expert"] = l.hottest;
      shown["hottest_rows"] = l.hottest_rows;
    }
    layers.push_back(std::move(shown));
  }
  return layers;
}

// "NVIDIA H200", or what kind of device it is.
std::string device_of(const worker_view& w) {
  if (!w.environment) return {};
  const auto seen = resolution::read_environment(*w.environment, w.name);
  if (!seen) return {};
  if (seen->device_name && !seen->device_name->empty()) return *seen->device_name;
  return seen->device ? std::string(resolution::word_of(*seen->device)) : std::string();
}

json events_of(const tier_view& view) {
  json events = json::array();
  for (const event_view& e : view.events) {
    events.push_back({{"level", level_name(e.severity)},
                      {"event", e.event},
                      {"detail", e.detail},
                      {"age_ns", e.age}});
  }
  return events;
}

}  // namespace

std::string status_document(const tier_view& view, const std::string& admin_socket) {
  json document = identity("moetier.status/1", view);
  document["ready"] = view.ready;
  document["not_ready_reasons"] = view.not_ready_reasons;
  if (view.snapshot != nullptr) {
    const auto& s = *view.snapshot;
    document["carrier"] = s.carrier;
    document["backend"] = s.backend;
    document["exact_allowed"] = s.exact_allowed;
    document["shared_experts"] = s.shared_experts;
    document["model"] = {{"type", s.model.model_type},
                         {"fingerprint", hex(s.model.fingerprint)},
                         {"hidden_size", s.model.hidden_size},
                         {"intermediate_size", s.model.intermediate_size},
                         {"experts", s.model.experts},
                         {"top_k", s.model.top_k},
                         {"routing", routing_method_name(s.model.routing.method)},
                         {"activation", activation_name(s.model.activation.kind)},
                         {"format", quant_name(s.model.format.quant)},
                         {"moe_layers", s.model.moe_layers.size()}};
  }
  if (view.resolved != nullptr) {
    document["resolution"] = {{"id", hex(view.resolved->resolution_id)},
                              {"describe", resolution::describe(*view.resolved)},
                              {"degraded", view.resolved->degraded()}};
  }
  json workers = json::array();
  for (const worker_view& w : view.workers) {
    workers.push_back({{"worker", w.worker.value},
                       {"name", w.name},
                       {"state", worker_state_name(w.state)},
                       {"suspected", w.suspected},
                       {"incarnation", hex(w.incarnation.value)},
                       {"first_slot", w.first_slot},
                       {"slots", w.slots},
                       {"device", device_of(w)},
                       {"backend", w.backend},
                       {"heartbeat_age_ns", w.heartbeat_age},
                       {"rows_total", w.rows_total},
                       {"calls_total", w.calls_total}});
  }
  document["workers"] = std::move(workers);
  json sessions = json::array();
  for (const session_view& s : view.sessions) {
    sessions.push_back({{"session", s.session.value},
                        {"source", s.source.value},
                        {"tenant", s.tenant},
                        {"class", deadline_class_name(s.urgency)},
                        {"thin", s.thin},
                        {"attached", s.attached},
                        {"calls", s.use.calls},
                        {"token_layers", s.use.token_layers},
                        {"generation", s.use.generation.value},
                        {"age_ns", s.age},
                        {"lease_left_ns", s.lease_left}});
  }
  document["sessions"] = std::move(sessions);
  document["load"] = load_of(view);
  document["events"] = events_of(view);
  document["unreplicated_experts"] = view.unreplicated_experts;
  document["lost_experts"] = view.lost_experts;
  json losses = json::array();
  for (const loss_view& l : view.losses) {
    losses.push_back({{"number", l.number},
                      {"worker", l.worker},
                      {"cause", loss_cause_name(l.cause)},
                      {"detection_ns", l.detection},
                      {"recovery_ns", l.recovery}});
  }
  document["losses"] = std::move(losses);
  document["late_reports"] = view.late_reports;
  document["suspects_itself"] = view.suspects_itself;
  document["stale_commands_refused"] = view.stale_commands_refused;
  if (!admin_socket.empty()) document["admin_socket"] = admin_socket;
  return text_of(document);
}

expected<std::string> placement_document(const tier_view& view) {
  if (view.snapshot == nullptr) return fail(reason::not_ready, "nothing is committed yet");
  const auto& s = *view.snapshot;
  json document = identity("moetier.placement/1", view);
  document["plan"] = json::parse(
      eplb::placement_to_json(s.placement, s.shares, s.model.fingerprint, s.plan), nullptr, false);
  json workers = json::array();
  for (const worker_view& w : view.workers) {
    workers.push_back({{"worker", w.worker.value},
                       {"name", w.name},
                       {"state", worker_state_name(w.state)},
                       {"first_slot", w.first_slot},
                       {"slots", w.slots},
                       {"rows", w.counts}});
  }
  document["workers"] = std::move(workers);
  return text_of(document);
}

std::string experts_document(const tier_view& view) {
  json document = identity("moetier.experts/1", view);
  json workers = json::array();
  for (const worker_view& w : view.workers) workers.push_back(w.name);
  document["workers"] = std::move(workers);
  json layers = json::array();
  const std::vector<layer_load> loads = layer_loads(view);
  for (std::size_t l = 0; l < loads.size(); ++l) {
    json experts = json::array();
    for (const expert_load& e : expert_loads(view, l)) {
      json replicas = json::array();
      for (const expert_place& at : e.places) {
        replicas.push_back({{"worker", at.worker}, {"slot", at.slot}, {"rows", at.rows}});
      }
      experts.push_back({{"expert", e.expert}, {"rows", e.rows}, {"replicas", replicas}});
    }
    layers.push_back({{"layer", loads[l].layer.value},
                      {"rows", loads[l].total()},
                      {"balancedness", loads[l].balancedness},
                      {"experts", std::move(experts)}});
  }
  document["layers"] = std::move(layers);
  return text_of(document);
}

std::string environments_document(const tier_view& view) {
  json document = identity("moetier.environments/1", view);
  json workers = json::object();
  for (const worker_view& w : view.workers) {
    if (w.environment) workers[w.name] = json::parse(*w.environment, nullptr, false);
  }
  document["workers"] = std::move(workers);
  return text_of(document);
}

std::string adapters_document(const tier_view& view) {
  json document = identity("moetier.adapters/1", view);
  document["enabled"] = view.runs_adapters;
  json adapters = json::array();
  for (const adapter_view& a : view.adapters) {
    adapters.push_back({{"adapter", a.adapter},
                        {"name", a.name},
                        {"path", a.path},
                        {"listed", a.listed},
                        {"workers", a.workers},
                        {"problem", a.problem}});
  }
  document["adapters"] = std::move(adapters);
  return text_of(document);
}

}  // namespace moetier::coordinator
