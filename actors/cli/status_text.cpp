#include "actors/cli/status_text.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/cli/table.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {
namespace {

using nlohmann::json;

// "model qwen3_moe, none weights" and what runs; a degraded resolution is told with its trail.
std::string served_text(const json& status) {
  std::string text;
  const json model = status.value("model", json::object());
  if (!model.empty())
    text += fmt::format("model {}  {} experts, {} a token, {} MoE layers, format {}\n",
                        model.value("type", ""), model.value("experts", 0), model.value("top_k", 0),
                        model.value("moe_layers", 0), model.value("format", ""));
  if (status.contains("backend"))
    text += fmt::format("backend {}  carrier {}\n", status.value("backend", ""),
                        status.value("carrier", ""));
  const json resolution = status.value("resolution", json::object());
  if (resolution.value("degraded", false))
    text += fmt::format("degraded: {}\n", resolution.value("describe", ""));
  return text;
}

std::string workers_text(const json& status) {
  table t({"worker", "name", "state", "slots", "backend", "rows", "calls", "beat"});
  for (const json& w : status.value("workers", json::array())) {
    t.add({std::to_string(w.value("worker", 0)), w.value("name", ""), w.value("state", ""),
           std::to_string(w.value("slots", 0)), w.value("backend", ""),
           std::to_string(w.value("rows_total", std::uint64_t{0})),
           std::to_string(w.value("calls_total", std::uint64_t{0})),
           fmt::format("{}ms", w.value("heartbeat_age_ns", std::uint64_t{0}) / k_millisecond)});
  }
  return t.text();
}

std::string sessions_text(const json& status) {
  const json sessions = status.value("sessions", json::array());
  if (sessions.empty()) return "no sessions\n";
  table t({"session", "source", "tenant", "kind", "age", "lease left"});
  for (const json& s : sessions) {
    t.add({std::to_string(s.value("session", 0)), std::to_string(s.value("source", 0)),
           s.value("tenant", ""), s.value("thin", false) ? "thin" : "direct",
           fmt::format("{}s", s.value("age_ns", std::uint64_t{0}) / k_second),
           fmt::format("{}ms", s.value("lease_left_ns", std::uint64_t{0}) / k_millisecond)});
  }
  return t.text();
}

}  // namespace

std::string status_text(std::string_view document) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object()) return {};
  std::string text =
      fmt::format("epoch {}  generation {}  {}\n", status.value("epoch", std::uint64_t{0}),
                  status.value("generation", std::uint64_t{0}),
                  status.value("ready", false) ? "ready" : "not ready");
  for (const json& why : status.value("not_ready_reasons", json::array()))
    text += fmt::format("  {}\n", why.is_string() ? why.get<std::string>() : "");
  return fmt::format("{}{}\n{}\n{}", text, served_text(status), workers_text(status),
                     sessions_text(status));
}

}  // namespace moetier::cli
