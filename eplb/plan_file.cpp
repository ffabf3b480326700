#include "eplb/plan_file.hpp"

#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schemas/base/limits.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/file/strict_json.hpp"

namespace moetier::eplb {
namespace {

using nlohmann::json;

constexpr std::size_t k_values_max = std::size_t{1} << 21;

// Reads one document; the first problem is kept and everything after it is skipped.
class plan_reader final {
 public:
  explicit plan_reader(std::string_view file) : file_(file) {}

  bool failed() const noexcept { return problem_.has_value(); }
  unexpected_error problem() const { return unexpected_error(*problem_); }

  void refuse(const std::string& what) {
    if (!problem_) problem_ = make_error(reason::file_malformed, std::string(file_), what);
  }

  void only_keys(const json& object, const std::string& place, const std::set<std::string>& known) {
    if (!object.is_object()) return refuse(fmt::format("{} is not an object", place));
    for (const auto& [key, value] : object.items()) {
      if (!known.contains(key)) refuse(fmt::format("unknown key {} in {}", printable(key), place));
    }
  }

  // An integer array of exactly `length` entries in [low, high]; length 0 = any.
  std::vector<std::int64_t> integers(const json& object, const std::string& place, const char* key,
                                     std::size_t length, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> out;
    const auto at = object.find(key);
    if (at == object.end() || !at->is_array()) {
      refuse(fmt::format("{} needs a list {}", place, key));
      return out;
    }
    if (length != 0 && at->size() != length) {
      refuse(fmt::format("{} {} has {} entries; expected {}", place, key, at->size(), length));
      return out;
    }
    for (std::size_t i = 0; i < at->size(); ++i) {
      const json& v = (*at)[i];
      if (!v.is_number_integer() ||
          (v.is_number_unsigned() && v.get<std::uint64_t>() > INT64_MAX) ||
          v.get<std::int64_t>() < low || v.get<std::int64_t>() > high) {
        refuse(fmt::format("{} {} entry {} must be an integer from {} to {}", place, key, i, low,
                           high));
        return {};
      }
      out.push_back(v.get<std::int64_t>());
    }
    return out;
  }

  std::int64_t integer(const json& object, const std::string& place, const char* key,
                       std::int64_t low, std::int64_t high) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_number_integer() || at->get<std::int64_t>() < low ||
        at->get<std::int64_t>() > high) {
      refuse(fmt::format("{} needs {}, an integer from {} to {}", place, key, low, high));
      return low;
    }
    return at->get<std::int64_t>();
  }

 private:
  std::string_view file_;
  std::optional<error> problem_;
};

const std::set<std::string> k_top_keys{"format",           "fingerprint", "experts",
                                       "slots_per_worker", "layers",      "plan_hash"};
const std::set<std::string> k_layer_keys{"layer", "slots", "shares"};

std::string hex(std::uint64_t v) { return fmt::format("{:016x}", v); }

}  // namespace

expected<std::vector<std::uint32_t>> slots_per_worker_of(std::string_view text,
                                                         std::string_view file_name) {
  auto doc = parse_json(text, file_name, {.values_max = k_values_max});
  if (!doc) return unexpected_error(doc.error());
  plan_reader r(file_name);
  r.only_keys(*doc, "the plan", k_top_keys);
  if (r.failed()) return r.problem();
  const auto slots = r.integers(*doc, "the plan", "slots_per_worker", 0, 1, k_slots_per_worker_max);
  if (!r.failed() && (slots.empty() || slots.size() > k_workers_max)) {
    r.refuse(fmt::format("slots_per_worker has {} workers; 1 to {} are allowed", slots.size(),
                         k_workers_max));
  }
  if (r.failed()) return r.problem();
  return std::vector<std::uint32_t>(slots.begin(), slots.end());
}

expected<placement> placement_from_json(std::string_view text, std::string_view file_name,
                                        std::uint32_t experts, std::span<const layer_id> layers,
                                        std::span<const worker_span> spans,
                                        std::uint64_t fingerprint) {
  auto doc = parse_json(text, file_name, {.values_max = k_values_max});
  if (!doc) return unexpected_error(doc.error());
  plan_reader r(file_name);
  r.only_keys(*doc, "the plan", k_top_keys);
  if (r.failed()) return r.problem();
  r.integer(*doc, "the plan", "format", 1, 1);
  r.integer(*doc, "the plan", "experts", experts, experts);
  if (const auto at = doc->find("fingerprint"); at != doc->end() && fingerprint != 0) {
    if (!at->is_string() || at->get<std::string>() != hex(fingerprint)) {
      r.refuse(fmt::format("the plan's fingerprint is not this model's {}", hex(fingerprint)));
    }
  }
  const auto slots =
      r.integers(*doc, "the plan", "slots_per_worker", spans.size(), 1, k_slots_per_worker_max);
  std::size_t dense = 0;
  for (std::size_t w = 0; w < slots.size(); ++w) {
    if (slots[w] != spans[w].slots) {
      r.refuse(fmt::format("slots_per_worker entry {} is {}; worker {} has {}", w, slots[w],
                           spans[w].worker.value, spans[w].slots));
    }
    dense += spans[w].slots;
  }
  const auto list = doc->find("layers");
  if (list == doc->end() || !list->is_array() || list->size() != layers.size()) {
    r.refuse(fmt::format("the plan needs a list layers with {} entries", layers.size()));
  }
  if (r.failed()) return r.problem();

  std::vector<layer_slots> all;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string place = fmt::format("layers entry {}", i);
    r.only_keys((*list)[i], place, k_layer_keys);
    if (r.failed()) return r.problem();
    r.integer((*list)[i], place, "layer", layers[i].value, layers[i].value);
    const auto ids = r.integers((*list)[i], place, "slots", dense, -1, std::int64_t{experts} - 1);
    if ((*list)[i].contains("shares"))
      r.integers((*list)[i], place, "shares", dense, 0, k_shares_unit);
    if (r.failed()) return r.problem();
    all.push_back({layers[i], {ids.begin(), ids.end()}});
  }
  return placement::make(experts, {spans.begin(), spans.end()}, std::move(all));
}

std::string placement_to_json(const placement& p, const shares& s, std::uint64_t fingerprint,
                              plan_hash hash) {
  nlohmann::ordered_json doc;
  doc["format"] = 1;
  doc["fingerprint"] = hex(fingerprint);
  doc["experts"] = p.experts();
  doc["slots_per_worker"] = nlohmann::ordered_json::array();
  for (const worker_span& w : p.spans()) doc["slots_per_worker"].push_back(w.slots);
  doc["layers"] = nlohmann::ordered_json::array();
  for (std::size_t l = 0; l < p.layers().size(); ++l) {
    nlohmann::ordered_json layer;
    layer["layer"] = p.layers()[l].layer.value;
    layer["slots"] = p.layers()[l].experts;
    const auto units = s.units(l);
    layer["shares"] = std::vector<std::uint32_t>(units.begin(), units.end());
    doc["layers"].push_back(std::move(layer));
  }
  doc["plan_hash"] = hex(hash.value);
  return doc.dump();
}

}  // namespace moetier::eplb
