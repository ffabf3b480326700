#include <cstdio>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/commands.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/cli/status_watch.hpp"
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

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace

expected<exit_code> run_status(const command_line& line) {
  auto link = reach(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  if (line.watch.on) return watch_status(line, **link);
  const auto text = (*link)->document(client::admin_document::status, line.timeout);
  if (!text) return tl::unexpected(text.error());
  const auto status = parsed(*text);
  if (!status) return tl::unexpected(status.error());
  print(line.json ? *text + "\n" : status_text(*text));
  return status->value("ready", false) ? exit_code::done : exit_code::check_failed;
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
