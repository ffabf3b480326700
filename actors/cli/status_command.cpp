#include <algorithm>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/cli/commands.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/cli/table.hpp"
#include "actors/cli/tier_address.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::cli {
namespace {

using nlohmann::json;

expected<json> parsed(const std::string& text) {
  json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return fail(reason::frame_malformed, "the document is no JSON object");
  return document;
}

// Rows of each worker per layer, how evenly they lie, and which share the hottest expert has.
std::string load_text(const json& placement) {
  const json layers = placement["plan"].value("layers", json::array());
  const json workers = placement.value("workers", json::array());
  std::vector<std::string> heads{"layer"};
  for (const json& w : workers) heads.push_back(w.value("name", ""));
  heads.insert(heads.end(), {"balance", "hottest expert"});
  table t(std::move(heads));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<std::string> cells{std::to_string(layers[l].value("layer", 0))};
    std::vector<std::uint64_t> by_expert(placement["plan"].value("experts", std::size_t{0}), 0);
    std::uint64_t total = 0;
    std::uint64_t most = 0;
    std::size_t dense = 0;
    for (const json& w : workers) {
      const auto slots = w.value("slots", std::size_t{0});
      const json rows = w.value("rows", json::array());
      std::uint64_t sum = 0;
      for (std::size_t s = 0; s < slots && dense < layers[l]["slots"].size(); ++s, ++dense) {
        const std::uint64_t n =
            l < rows.size() && s < rows[l].size() ? rows[l][s].get<std::uint64_t>() : 0;
        const auto expert = layers[l]["slots"].at(dense).get<std::int64_t>();
        if (expert >= 0) by_expert.at(static_cast<std::size_t>(expert)) += n;
        sum += n;
      }
      cells.push_back(std::to_string(sum));
      total += sum;
      most = std::max(most, sum);
    }
    if (total == 0) {
      cells.insert(cells.end(), {"-", "-"});
    } else {
      const auto hot = std::max_element(by_expert.begin(), by_expert.end());
      const double mean = static_cast<double>(total) / static_cast<double>(workers.size());
      cells.push_back(fmt::format("{:.2f}", mean / static_cast<double>(most)));
      cells.push_back(fmt::format("{} ({:.1f}%)", hot - by_expert.begin(),
                                  100.0 * static_cast<double>(*hot) / static_cast<double>(total)));
    }
    t.add(std::move(cells));
  }
  return t.text();
}

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace

expected<exit_code> run_status(const command_line& line) {
  auto link = reach(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  const auto text = (*link)->document(client::admin_document::status, line.timeout);
  if (!text) return tl::unexpected(text.error());
  const auto status = parsed(*text);
  if (!status) return tl::unexpected(status.error());
  const bool ready = status->value("ready", false);
  const exit_code code = ready ? exit_code::done : exit_code::check_failed;
  if (line.json) {
    print(*text + "\n");
    return code;
  }
  print(status_text(*text));
  const auto placement_text = (*link)->document(client::admin_document::placement, line.timeout);
  if (placement_text) {
    const auto placement = parsed(*placement_text);
    if (!placement) return tl::unexpected(placement.error());
    print(fmt::format("\nrows in this generation\n{}", load_text(*placement)));
  }
  return code;
}

expected<exit_code> run_placement_show(const command_line& line) {
  auto link = reach(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  const auto text = (*link)->document(client::admin_document::placement, line.timeout);
  if (!text) return tl::unexpected(text.error());
  const auto placement = parsed(*text);
  if (!placement) return tl::unexpected(placement.error());
  const json plan = placement->value("plan", json::object());
  if (line.json) {
    // Exactly what --placement takes.
    print(plan.dump(1) + "\n");
    return exit_code::done;
  }
  print(fmt::format("generation {}  plan {}\n\n", placement->value("generation", std::uint64_t{0}),
                    placement->value("plan_hash", "")));
  const json workers = placement->value("workers", json::array());
  table t({"layer", "worker", "experts by slot"});
  for (const json& layer : plan.value("layers", json::array())) {
    std::size_t dense = 0;
    for (const json& w : workers) {
      std::string experts;
      const auto slots = w.value("slots", std::size_t{0});
      for (std::size_t s = 0; s < slots && dense < layer["slots"].size(); ++s, ++dense) {
        experts += fmt::format("{} ", layer["slots"].at(dense).get<std::int64_t>());
      }
      t.add({std::to_string(layer.value("layer", 0)), w.value("name", ""), experts});
    }
  }
  print(t.text());
  return exit_code::done;
}

}  // namespace moetier::cli
