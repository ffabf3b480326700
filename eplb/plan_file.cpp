#include "eplb/plan_file.hpp"

#include <optional>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "eplb/canonical.hpp"
#include "eplb/limits.hpp"
#include "eplb/plan_check.hpp"
#include "eplb/plan_reader.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/file/strict_json.hpp"

namespace moetier::eplb {
namespace {

using nlohmann::json;

constexpr std::size_t k_values_max = std::size_t{1} << 21;

constexpr const char* k_schema = "moetier.plan_file/1";
// `format` is how files named their form before they had a schema.
const std::set<std::string> k_top_keys{"format",   "fingerprint", "experts",
                                       "layers",   "moves",       "slots_per_worker",
                                       "checksum", "plan_hash",   "schema"};
const std::set<std::string> k_layer_keys{"layer", "slots", "shares"};
const std::set<std::string> k_move_keys{"layer", "slot", "expert", "replaced"};

std::string hex(std::uint64_t v) { return fmt::format("{:016x}", v); }

std::uint64_t checksum_of(const plan_file& f) {
  canonical_writer w;
  w.u32(static_cast<std::uint32_t>(f.fingerprint));
  w.u32(static_cast<std::uint32_t>(f.fingerprint >> 32));
  w.u32(f.draft.experts);
  w.u32(static_cast<std::uint32_t>(f.draft.slots_per_worker.size()));
  for (const std::uint32_t k : f.draft.slots_per_worker) w.u32(k);
  for (const draft_layer& l : f.draft.layers) {
    w.u32(l.layer.value);
    for (const std::int32_t e : l.slots) w.u32(static_cast<std::uint32_t>(e));
    w.u32(static_cast<std::uint32_t>(l.units.size()));
    for (const std::uint32_t u : l.units) w.u32(u);
  }
  w.u32(static_cast<std::uint32_t>(f.moves.size()));
  for (const plan_move& m : f.moves) {
    w.u32(m.layer.value);
    w.u32(m.slot);
    w.u32(m.expert);
    w.u32(static_cast<std::uint32_t>(m.replaced));
  }
  return xxh3_64(w.take());
}

// The digits of a 64-bit number, or nothing.
std::optional<std::uint64_t> number_of(const json& v) {
  if (!v.is_string()) return std::nullopt;
  const auto& digits = v.get_ref<const std::string&>();
  if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  return std::stoull(digits, nullptr, 16);
}

void read_slot_counts(plan_reader& r, const json& doc, const plan_target* target,
                      std::uint32_t workers_max, std::vector<std::uint32_t>& into) {
  const std::size_t count = target == nullptr ? 0 : target->spans.size();
  const auto slots =
      r.integers(doc, "the plan", "slots_per_worker", count, 1, k_slots_per_worker_max);
  if (!r.failed() && (slots.empty() || slots.size() > workers_max)) {
    r.refuse(fmt::format("slots_per_worker has {} workers; 1 to {} are allowed", slots.size(),
                         workers_max));
  }
  for (std::size_t w = 0; target != nullptr && w < slots.size(); ++w) {
    if (slots[w] == target->spans[w].slots) continue;
    r.refuse(fmt::format("slots_per_worker entry {} is {}; worker {} has {}", w, slots[w],
                         target->spans[w].worker.value, target->spans[w].slots));
  }
  into.assign(slots.begin(), slots.end());
}

void read_layer(plan_reader& r, const json& entry, std::size_t i, const plan_target* target,
                const plan_draft& d, std::size_t slots, draft_layer& into) {
  const std::string place = fmt::format("layers entry {}", i);
  r.only_keys(entry, place, k_layer_keys);
  if (r.failed()) return;
  const std::int64_t low = target == nullptr ? 0 : target->layers[i].value;
  const std::int64_t high = target == nullptr ? 65535 : low;
  into.layer = layer_id(static_cast<std::uint16_t>(r.integer(entry, place, "layer", low, high)));
  const auto ids = r.integers(entry, place, "slots", slots, -1, std::int64_t{d.experts} - 1);
  into.slots.assign(ids.begin(), ids.end());
  if (!entry.contains("shares")) return;
  const auto units = r.integers(entry, place, "shares", slots, 0, k_shares_unit);
  into.units.assign(units.begin(), units.end());
}

void read_moves(plan_reader& r, const json& doc, std::size_t slots, plan_file& into) {
  const auto list = doc.find("moves");
  if (list == doc.end()) return;
  if (!list->is_array()) return r.refuse("moves is not a list");
  for (std::size_t i = 0; i < list->size() && !r.failed(); ++i) {
    const std::string place = fmt::format("moves entry {}", i);
    const json& m = (*list)[i];
    r.only_keys(m, place, k_move_keys);
    if (r.failed()) return;
    const std::int64_t last = std::int64_t{into.draft.experts} - 1;
    plan_move move;
    move.layer = layer_id(static_cast<std::uint16_t>(r.integer(m, place, "layer", 0, 65535)));
    move.slot = static_cast<std::uint32_t>(
        r.integer(m, place, "slot", 0, static_cast<std::int64_t>(slots) - 1));
    move.expert = static_cast<std::uint32_t>(r.integer(m, place, "expert", 0, last));
    move.replaced = static_cast<std::int32_t>(r.integer(m, place, "replaced", -1, last));
    if (r.failed()) return;
    bool there = false;
    for (const draft_layer& l : into.draft.layers) {
      there = there || (l.layer == move.layer &&
                        l.slots[move.slot] == static_cast<std::int32_t>(move.expert));
    }
    if (!there) {
      return r.refuse(
          fmt::format("{} brings expert {} to layer {} slot {}, where the plan has another", place,
                      move.expert, move.layer.value, move.slot));
    }
    into.moves.push_back(move);
  }
}

void read_numbers(plan_reader& r, const json& doc, const plan_target* target, plan_file& into) {
  if (const auto at = doc.find("fingerprint"); at != doc.end()) {
    const auto number = number_of(*at);
    if (!number) r.refuse("fingerprint must be 16 hexadecimal digits in quotes");
    into.fingerprint = number.value_or(0);
    if (target != nullptr && target->fingerprint != 0 && number && *number != target->fingerprint) {
      r.refuse(
          fmt::format("the plan's fingerprint is not this model's {}", hex(target->fingerprint)));
    }
  }
  for (const char* key : {"plan_hash", "checksum"}) {
    if (const auto at = doc.find(key); at != doc.end() && !number_of(*at))
      r.refuse(fmt::format("{} must be 16 hexadecimal digits in quotes", key));
  }
}

expected<plan_file> read(std::string_view text, std::string_view file_name,
                         const plan_target* target) {
  auto doc = parse_json(text, file_name, {.values_max = k_values_max});
  if (!doc) return unexpected_error(doc.error());
  plan_reader r(file_name);
  plan_file f;
  r.only_keys(*doc, "the plan", k_top_keys);
  if (r.failed()) return r.problem();
  const auto schema = doc->find("schema");
  if (schema == doc->end()) {
    r.integer(*doc, "the plan", "format", 1, 1);
  } else if (!schema->is_string() || schema->get_ref<const std::string&>() != k_schema) {
    r.refuse(fmt::format("its schema is not {}", k_schema));
  }
  const std::int64_t low = target == nullptr ? 1 : target->experts;
  const std::int64_t high = target == nullptr ? k_experts_max : target->experts;
  f.draft.experts = static_cast<std::uint32_t>(r.integer(*doc, "the plan", "experts", low, high));
  read_numbers(r, *doc, target, f);
  read_slot_counts(r, *doc, target, k_plan_workers_max, f.draft.slots_per_worker);
  if (r.failed()) return r.problem();
  std::size_t slots = 0;
  for (const std::uint32_t k : f.draft.slots_per_worker) slots += k;
  const auto list = doc->find("layers");
  const bool listed = list != doc->end() && list->is_array();
  if (target != nullptr && (!listed || list->size() != target->layers.size())) {
    r.refuse(fmt::format("the plan needs a list layers with {} entries", target->layers.size()));
  } else if (!listed || list->empty()) {
    r.refuse("the plan needs a list layers");
  }
  if (r.failed()) return r.problem();
  for (std::size_t i = 0; i < list->size() && !r.failed(); ++i) {
    f.draft.layers.emplace_back();
    read_layer(r, (*list)[i], i, target, f.draft, slots, f.draft.layers.back());
  }
  if (r.failed()) return r.problem();
  read_moves(r, *doc, slots, f);
  if (r.failed()) return r.problem();
  if (const auto at = doc->find("checksum");
      at != doc->end() && *number_of(*at) != checksum_of(f)) {
    r.refuse("its checksum is not of what it says; after an edit by hand drop the key checksum");
    return r.problem();
  }
  return f;
}

}  // namespace

expected<plan_file> read_plan_file(std::string_view text, std::string_view file_name) {
  auto f = read(text, file_name, nullptr);
  if (!f) return f;
  const auto ok =
      check_plan(f->draft, {.slots_per_worker = f->draft.slots_per_worker, .uneven_allowed = true});
  if (!ok) return fail(reason::file_malformed, std::string(file_name), ok.error().text);
  return f;
}

expected<std::vector<std::uint32_t>> slots_per_worker_of(std::string_view text,
                                                         std::string_view file_name) {
  auto doc = parse_json(text, file_name, {.values_max = k_values_max});
  if (!doc) return unexpected_error(doc.error());
  plan_reader r(file_name);
  r.only_keys(*doc, "the plan", k_top_keys);
  if (r.failed()) return r.problem();
  std::vector<std::uint32_t> slots;
  read_slot_counts(r, *doc, nullptr, k_workers_max, slots);
  if (r.failed()) return r.problem();
  return slots;
}

expected<placed_plan> read_placed_plan(std::string_view text, std::string_view file_name,
                                       const plan_target& target) {
  auto f = read(text, file_name, &target);
  if (!f) return unexpected_error(f.error());
  std::vector<layer_slots> layers;
  placed_plan out;
  for (const draft_layer& l : f->draft.layers) layers.push_back({l.layer, l.slots});
  auto placed = placement::make(target.experts, {target.spans.begin(), target.spans.end()},
                                std::move(layers));
  if (!placed) return unexpected_error(placed.error());
  // Shares too, before anybody acts on the placement.
  const auto ok =
      check_plan(f->draft, {.slots_per_worker = f->draft.slots_per_worker, .uneven_allowed = true});
  if (!ok) return unexpected_error(ok.error());
  out.placed = std::move(*placed);
  for (draft_layer& l : f->draft.layers) out.units.push_back(std::move(l.units));
  return out;
}

std::string plan_file_text(const plan_file& f, plan_hash plan) {
  using out = nlohmann::ordered_json;
  out doc;
  doc["schema"] = k_schema;
  if (f.fingerprint != 0) doc["fingerprint"] = hex(f.fingerprint);
  doc["experts"] = f.draft.experts;
  doc["slots_per_worker"] = f.draft.slots_per_worker;
  doc["layers"] = out::array();
  for (const draft_layer& l : f.draft.layers) {
    out layer;
    layer["layer"] = l.layer.value;
    layer["slots"] = l.slots;
    if (!l.units.empty()) layer["shares"] = l.units;
    doc["layers"].push_back(std::move(layer));
  }
  if (!f.moves.empty()) {
    doc["moves"] = out::array();
    for (const plan_move& m : f.moves) {
      doc["moves"].push_back({{"layer", m.layer.value},
                              {"slot", m.slot},
                              {"expert", m.expert},
                              {"replaced", m.replaced}});
    }
  }
  if (plan.value != 0) doc["plan_hash"] = hex(plan.value);
  doc["checksum"] = hex(checksum_of(f));
  return doc.dump();
}

std::string placement_to_json(const placement& p, const shares& s, std::uint64_t fingerprint,
                              plan_hash hash) {
  plan_file f;
  f.fingerprint = fingerprint;
  f.draft.experts = p.experts();
  for (const worker_span& w : p.spans()) f.draft.slots_per_worker.push_back(w.slots);
  for (std::size_t l = 0; l < p.layers().size(); ++l) {
    const auto units = s.units(l);
    f.draft.layers.push_back(
        {p.layers()[l].layer, p.layers()[l].experts, {units.begin(), units.end()}});
  }
  return plan_file_text(f, hash);
}

}  // namespace moetier::eplb
