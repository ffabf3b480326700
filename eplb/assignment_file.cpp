#include "eplb/assignment_file.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "eplb/plan_check.hpp"
#include "eplb/planner/window_wrap.hpp"
#include "eplb/slot_layout.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/file/strict_json.hpp"

namespace moetier::eplb {
namespace {

using nlohmann::json;

constexpr std::size_t k_values_max = std::size_t{1} << 21;
constexpr std::string_view k_assignments = "initial_global_assignments";

}  // namespace

bool is_assignment_file(std::string_view text) noexcept {
  return text.find(k_assignments) != std::string_view::npos;
}

expected<plan_draft> read_assignment_file(std::string_view text, std::string_view file_name,
                                          std::uint32_t workers, std::uint32_t experts) {
  const auto refuse = [&](const std::string& what) {
    return fail(reason::file_malformed, std::string(file_name), what);
  };
  auto doc = parse_json(text, file_name, {.values_max = k_values_max});
  if (!doc) return unexpected_error(doc.error());
  if (!doc->is_object()) return refuse("it is no object");
  for (const auto& [key, value] : doc->items()) {
    if (key != "num_slots" && key != "layer_updates_per_iter" && key != k_assignments)
      return refuse(fmt::format("unknown key {}", printable(key)));
  }
  const auto slots = doc->find("num_slots");
  if (slots == doc->end() || !slots->is_number_unsigned() ||
      slots->get<std::uint64_t>() > k_slots_per_layer_max)
    return refuse(fmt::format("num_slots must be an integer from 1 to {}", k_slots_per_layer_max));
  if (const auto at = doc->find("layer_updates_per_iter");
      at != doc->end() && (!at->is_number_integer() || at->get<std::int64_t>() != 0))
    return refuse("layer_updates_per_iter must be 0: only static assignments are taken");
  const auto layout =
      slot_layout::even(workers, static_cast<std::uint32_t>(slots->get<std::uint64_t>()));
  if (!layout) return refuse(layout.error().text);
  const auto layers = doc->find(k_assignments);
  if (layers == doc->end() || !layers->is_object() || layers->empty())
    return refuse(fmt::format("{} must name layers", k_assignments));

  std::map<std::uint16_t, std::vector<std::int32_t>> by_layer;  // by number, not by text
  std::int64_t largest = -1;
  for (const auto& [key, list] : layers->items()) {
    const bool number =
        !key.empty() && key.size() <= 4 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!number) return refuse(fmt::format("{} is no layer", printable(key)));
    if (!list.is_array() || list.size() != layout->slots()) {
      return refuse(fmt::format("layer {} lists {} slots; num_slots is {}", key, list.size(),
                                layout->slots()));
    }
    auto& ids = by_layer[static_cast<std::uint16_t>(std::stoul(key))];
    if (!ids.empty()) return refuse(fmt::format("layer {} stands twice", std::stoul(key)));
    for (std::size_t s = 0; s < list.size(); ++s) {
      if (!list[s].is_number_unsigned() || list[s].get<std::uint64_t>() >= k_experts_max) {
        return refuse(fmt::format("layer {} slot {} must be an expert from 0 to {}", key, s,
                                  k_experts_max - 1));
      }
      ids.push_back(list[s].get<std::int32_t>());
      largest = std::max<std::int64_t>(largest, ids.back());
    }
  }
  plan_draft d;
  d.experts = experts != 0 ? experts : static_cast<std::uint32_t>(largest + 1);
  for (std::uint32_t g = 0; g < layout->workers(); ++g)
    d.slots_per_worker.push_back(layout->count(g));
  for (auto& [layer, ids] : by_layer) d.layers.push_back({layer_id{layer}, std::move(ids), {}});
  const auto ok = check_plan(d, {.slots_per_worker = d.slots_per_worker, .uneven_allowed = true});
  if (!ok) return refuse(ok.error().text);
  return d;
}

expected<assignment_text> write_assignment_file(const plan_draft& d) {
  assignment_text out;
  nlohmann::ordered_json doc;
  std::size_t slots = 0;
  for (const std::uint32_t k : d.slots_per_worker) slots += k;
  doc["num_slots"] = slots;
  doc["layer_updates_per_iter"] = 0;
  doc[std::string(k_assignments)] = nlohmann::ordered_json::object();
  for (const draft_layer& l : d.layers) {
    for (std::size_t s = 0; s < l.slots.size(); ++s) {
      if (l.slots[s] < 0) {
        return fail(reason::placement_invalid,
                    fmt::format("layer {} slot {} is empty, which {} cannot say", l.layer.value, s,
                                k_assignments));
      }
    }
    doc[std::string(k_assignments)][std::to_string(l.layer.value)] = l.slots;
    const std::vector<std::uint64_t> ones(l.slots.size(), 1);
    const auto even = units_of(l.slots, ones, d.experts);
    out.shares_lost = out.shares_lost || (!l.units.empty() && l.units != even);
  }
  out.text = doc.dump() + "\n";
  return out;
}

}  // namespace moetier::eplb
