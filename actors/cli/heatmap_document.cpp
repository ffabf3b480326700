#include "actors/cli/heatmap_document.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t k_bar_width = 24;
constexpr std::size_t k_layers_named = 16;

ordered_json layer_of(const ordered_json& layer, const ordered_json& workers, std::uint32_t top) {
  const auto rows = layer.at("rows").get<std::uint64_t>();
  ordered_json hottest = ordered_json::array();
  for (const ordered_json& e : layer.at("experts")) {
    if (hottest.size() == top) break;
    const auto own = e.at("rows").get<std::uint64_t>();
    ordered_json replicas = ordered_json::array();
    for (const ordered_json& r : e.at("replicas")) {
      replicas.push_back({{"worker", workers.at(r.at("worker").get<std::size_t>())},
                          {"slot", r.at("slot")},
                          {"rows", r.at("rows")}});
    }
    hottest.push_back(
        {{"expert", e.at("expert")},
         {"rows", own},
         {"share", rows == 0 ? 0.0 : static_cast<double>(own) / static_cast<double>(rows)},
         {"replicas", std::move(replicas)}});
  }
  return {{"layer", layer.at("layer")},
          {"rows", rows},
          {"balancedness", layer.at("balancedness")},
          {"experts", std::move(hottest)}};
}

}  // namespace

expected<ordered_json> heatmap_of(std::string_view experts_document,
                                  const heatmap_options& options) {
  const ordered_json given = ordered_json::parse(experts_document, nullptr, false);
  if (!given.is_object()) return fail(reason::frame_malformed, "the document is no JSON object");
  try {
    const ordered_json& layers = given.at("layers");
    if (layers.empty()) return fail(reason::not_ready, "nothing is committed yet");
    ordered_json shown = ordered_json::array();
    std::string served;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto number = layers[i].at("layer").get<std::uint32_t>();
      if (i < k_layers_named) served += fmt::format("{}{}", i == 0 ? "" : ", ", number);
      if (i == k_layers_named) served += ", ...";
      if (options.layer && *options.layer != number) continue;
      shown.push_back(layer_of(layers[i], given.at("workers"), options.top));
    }
    if (shown.empty()) return fail(reason::unknown_layer, *options.layer, served);
    return ordered_json{{"schema", "moetier.heatmap/1"},
                        {"epoch", given.at("epoch")},
                        {"generation", given.at("generation")},
                        {"layers", std::move(shown)}};
  } catch (const ordered_json::exception&) {
    return fail(reason::frame_malformed, "the document lacks a field");
  }
}

std::string heatmap_text(const ordered_json& map) {
  std::string text =
      fmt::format("rows in generation {}\n", map.at("generation").get<std::uint64_t>());
  for (const ordered_json& layer : map.at("layers")) {
    text +=
        fmt::format("\nlayer {}  {} rows  balance {:.2f}\n", layer.at("layer").get<std::uint32_t>(),
                    layer.at("rows").get<std::uint64_t>(), layer.at("balancedness").get<double>());
    table t({"expert", "rows", "share", "", "replicas"});
    double most = 0;
    for (const ordered_json& e : layer.at("experts")) {
      const auto share = e.at("share").get<double>();
      most = std::max(most, share);
      const auto width = most == 0 ? 0 : static_cast<std::size_t>(share / most * k_bar_width + 0.5);
      std::string replicas;
      for (const ordered_json& r : e.at("replicas")) {
        replicas += fmt::format(
            "{}{}:{} {}", replicas.empty() ? "" : ", ", r.at("worker").get<std::string>(),
            r.at("slot").get<std::uint32_t>(), r.at("rows").get<std::uint64_t>());
      }
      t.add({std::to_string(e.at("expert").get<std::uint32_t>()),
             std::to_string(e.at("rows").get<std::uint64_t>()), fmt::format("{:.1f}%", 100 * share),
             std::string(width, '#'), std::move(replicas)});
    }
    text += t.text();
  }
  return text;
}

}  // namespace moetier::cli
