#include "actors/cli/status_text.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/table.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {
namespace {

using nlohmann::json;

json list_of(const json& status, const char* name) { return status.value(name, json::array()); }
std::uint64_t number_of(const json& entry, const char* name) {
  return entry.value(name, std::uint64_t{0});
}

// Two documents side by side: how fast a counter of an entry rises.
class rates final {
 public:
  explicit rates(const std::optional<earlier_status>& earlier) {
    if (!earlier) return;
    before_ = json::parse(earlier->document, nullptr, false);
    seconds_ = before_.is_object() ? earlier->seconds_ago : 0;
  }

  bool known() const noexcept { return seconds_ > 0; }

  // Of the entry of `list` that has the same `key`; nothing where there was none or it began anew.
  std::optional<double> of(const json& entry, const char* list, const char* key,
                           const char* counter) const {
    if (!known()) return std::nullopt;
    for (const json& was : list_of(before_, list)) {
      if (was.value(key, json()) != entry.value(key, json())) continue;
      const std::uint64_t a = number_of(was, counter);
      const std::uint64_t b = number_of(entry, counter);
      if (b < a) return std::nullopt;
      return static_cast<double>(b - a) / seconds_;
    }
    return std::nullopt;
  }

  static std::string text(std::optional<double> rate) {
    return rate ? fmt::format("{:.0f}", *rate) : "-";
  }

 private:
  json before_;
  double seconds_ = 0;
};

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

std::string workers_text(const json& status, const rates& risen) {
  std::vector<std::string> heads{"worker", "name", "state", "slots", "backend", "rows", "calls"};
  if (risen.known()) heads.insert(heads.end(), {"rows/s", "calls/s"});
  heads.emplace_back("beat");
  table t(std::move(heads));
  for (const json& w : list_of(status, "workers")) {
    std::vector<std::string> cells{std::to_string(w.value("worker", 0)),
                                   w.value("name", ""),
                                   w.value("state", ""),
                                   std::to_string(w.value("slots", 0)),
                                   w.value("backend", ""),
                                   std::to_string(number_of(w, "rows_total")),
                                   std::to_string(number_of(w, "calls_total"))};
    if (risen.known()) {
      cells.push_back(rates::text(risen.of(w, "workers", "incarnation", "rows_total")));
      cells.push_back(rates::text(risen.of(w, "workers", "incarnation", "calls_total")));
    }
    cells.push_back(fmt::format("{}ms", number_of(w, "heartbeat_age_ns") / k_millisecond));
    t.add(std::move(cells));
  }
  return t.text();
}

// Sessions count tokens of all layers' calls; a token is through when every layer had it.
std::optional<double> tokens_rate(const json& status, const json& session, const rates& risen) {
  const auto layers = status.value("model", json::object()).value("moe_layers", 0);
  const auto rate = risen.of(session, "sessions", "session", "token_layers");
  if (!rate || layers <= 0) return std::nullopt;
  return *rate / layers;
}

std::string sessions_text(const json& status, const rates& risen) {
  const json sessions = list_of(status, "sessions");
  if (sessions.empty()) return "no sessions\n";
  std::vector<std::string> heads{"session", "source", "tenant", "kind", "age", "lease left"};
  if (risen.known()) heads.insert(heads.end(), {"tokens/s", "calls/s"});
  table t(std::move(heads));
  for (const json& s : sessions) {
    std::vector<std::string> cells{
        std::to_string(s.value("session", 0)),
        std::to_string(s.value("source", 0)),
        s.value("tenant", ""),
        s.value("thin", false) ? "thin" : "direct",
        fmt::format("{}s", number_of(s, "age_ns") / k_second),
        fmt::format("{}ms", number_of(s, "lease_left_ns") / k_millisecond)};
    if (risen.known()) {
      cells.push_back(rates::text(tokens_rate(status, s, risen)));
      cells.push_back(rates::text(risen.of(s, "sessions", "session", "calls")));
    }
    t.add(std::move(cells));
  }
  return t.text();
}

// Rows of each worker per layer, how evenly they lie, and which share the hottest expert has.
std::string load_text(const json& status) {
  const json layers = list_of(status, "load");
  if (layers.empty()) return {};
  std::vector<std::string> heads{"layer"};
  for (const json& w : list_of(status, "workers")) heads.push_back(w.value("name", ""));
  const std::size_t workers = heads.size() - 1;
  heads.insert(heads.end(), {"balance", "hottest expert"});
  table t(std::move(heads));
  for (const json& l : layers) {
    std::vector<std::string> cells{std::to_string(l.value("layer", 0))};
    std::uint64_t total = 0;
    for (const json& rows : list_of(l, "rows")) {
      if (cells.size() > workers || !rows.is_number_unsigned()) break;
      cells.push_back(std::to_string(rows.get<std::uint64_t>()));
      total += rows.get<std::uint64_t>();
    }
    cells.resize(workers + 1, "-");
    if (total == 0) {
      cells.insert(cells.end(), {"-", "-"});
    } else {
      cells.push_back(fmt::format("{:.2f}", l.value("balancedness", 0.0)));
      cells.push_back(fmt::format(
          "{} ({:.1f}%)", number_of(l, "hottest_expert"),
          100.0 * static_cast<double>(number_of(l, "hottest_rows")) / static_cast<double>(total)));
    }
    t.add(std::move(cells));
  }
  return fmt::format("\nrows in this generation\n{}", t.text());
}

std::string head_text(const json& status) {
  std::string text = fmt::format("epoch {}  generation {}  {}\n", number_of(status, "epoch"),
                                 number_of(status, "generation"),
                                 status.value("ready", false) ? "ready" : "not ready");
  for (const json& why : list_of(status, "not_ready_reasons"))
    text += fmt::format("  {}\n", why.is_string() ? why.get<std::string>() : "");
  return text;
}

}  // namespace

std::string status_text(std::string_view document, const std::optional<earlier_status>& earlier) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object()) return {};
  const rates risen(earlier);
  return fmt::format("{}{}\n{}\n{}{}", head_text(status), served_text(status),
                     workers_text(status, risen), sessions_text(status, risen), load_text(status));
}

std::string events_text(std::string_view document, std::size_t count) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object()) return {};
  std::string text;
  for (const json& e : list_of(status, "events")) {
    if (count-- == 0) break;
    text += fmt::format("{:>6}s ago  {:<5} {}  {}\n", number_of(e, "age_ns") / k_second,
                        e.value("level", ""), e.value("event", ""), e.value("detail", ""));
  }
  return text;
}

std::string status_line(std::string_view document, const std::optional<earlier_status>& earlier) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object()) return {};
  const rates risen(earlier);
  const json workers = list_of(status, "workers");
  std::size_t serving = 0;
  std::optional<double> rows;
  for (const json& w : workers) {
    serving += w.value("state", "") == "serving" ? 1 : 0;
    const auto rate = risen.of(w, "workers", "incarnation", "rows_total");
    if (rate) rows = rows.value_or(0) + *rate;
  }
  return fmt::format("epoch {}  generation {}  {}  workers {}/{}  sessions {}  rows/s {}\n",
                     number_of(status, "epoch"), number_of(status, "generation"),
                     status.value("ready", false) ? "ready" : "not ready", serving, workers.size(),
                     list_of(status, "sessions").size(), rates::text(rows));
}

}  // namespace moetier::cli
