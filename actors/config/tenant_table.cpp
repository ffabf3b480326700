#include "actors/config/tenant_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/config/key_table.hpp"

namespace moetier::config {
namespace {

constexpr std::string_view k_section = "tenants[";

bool put_number(std::uint64_t& at, std::string_view text, std::uint64_t max) {
  if (text == "none") return at = 0, true;
  const auto value = parse_count(text);
  if (!value || *value == 0 || *value > max) return false;
  at = *value;
  return true;
}
std::string show_number(std::uint64_t value) { return value == 0 ? "none" : std::to_string(value); }

bool put_small(std::uint32_t& at, std::string_view text, std::uint32_t max) {
  std::uint64_t value = 0;
  if (text == "none" || !put_number(value, text, max)) return false;
  at = static_cast<std::uint32_t>(value);
  return true;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= k_worker_name_bytes_max &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool put_names(std::vector<std::string>& at, std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (!is_name(text.substr(0, end))) return false;
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (names.empty()) return false;
  at = std::move(names);
  return true;
}

constexpr tenant_row k_rows[] = {
    {"match", "1 to 64 printable characters, * for every other name",
     "the common name of its certificate",
     [](tenant_settings& t, std::string_view text) {
       return is_name(text) && (t.match = text, true);
     },
     [](const tenant_settings& t) { return t.match; }},
    {"weight", "1 to 1000", "its share of the workers' time beside others",
     [](tenant_settings& t, std::string_view text) { return put_small(t.weight, text, 1000); },
     [](const tenant_settings& t) { return std::to_string(t.weight); }},
    {"class", "decode, prefill or batch", "the most urgent class that its sessions may have",
     [](tenant_settings& t, std::string_view text) {
       const auto c = deadline_class_of(text);
       if (c) t.highest = *c;
       return c.has_value();
     },
     [](const tenant_settings& t) { return std::string(deadline_class_name(t.highest)); }},
    {"sessions", "1 to 64", "its sessions at once",
     [](tenant_settings& t, std::string_view text) {
       return put_small(t.sessions, text, k_sessions_max);
     },
     [](const tenant_settings& t) { return std::to_string(t.sessions); }},
    {"tokens_in_flight", "none or 1 to 4294967295",
     "max_tokens times micro_batches of all its sessions together",
     [](tenant_settings& t, std::string_view text) {
       return put_number(t.tokens_in_flight, text, 0xffffffffu);
     },
     [](const tenant_settings& t) { return show_number(t.tokens_in_flight); }},
    {"tokens_per_second", "none or 1 to 1000000000", "tokens of its steps",
     [](tenant_settings& t, std::string_view text) {
       return put_number(t.tokens_per_second, text, 1'000'000'000);
     },
     [](const tenant_settings& t) { return show_number(t.tokens_per_second); }},
    {"models", "names or fingerprints of models", "what it may use; without it every model",
     [](tenant_settings& t, std::string_view text) { return put_names(t.models, text); },
     [](const tenant_settings& t) { return fmt::format("{}", fmt::join(t.models, ",")); }},
    {"may_degrade", "false; true is not enabled", "answers with experts missing",
     [](tenant_settings&, std::string_view text) { return text == "false"; },
     [](const tenant_settings&) { return std::string("false"); }},
};

}  // namespace

std::span<const tenant_row> tenant_table() noexcept { return k_rows; }

std::optional<tenant_key> tenant_key_of(std::string_view key) noexcept {
  if (!key.starts_with(k_section)) return std::nullopt;
  key.remove_prefix(k_section.size());
  const std::size_t end = key.find("].");
  if (end == std::string_view::npos) return std::nullopt;
  const auto place = parse_count(key.substr(0, end));
  if (!place || *place >= k_tenants_max) return std::nullopt;
  return tenant_key{static_cast<std::size_t>(*place), key.substr(end + 2)};
}

const tenant_row* find_tenant_row(std::string_view name) noexcept {
  const auto at = std::find_if(std::begin(k_rows), std::end(k_rows),
                               [&](const tenant_row& row) { return row.name == name; });
  return at == std::end(k_rows) ? nullptr : at;
}

std::string nearest_tenant_key(const tenant_key& key) {
  const std::string_view given = key.name.substr(0, 128);
  const auto best = std::min_element(std::begin(k_rows), std::end(k_rows),
                                     [&](const tenant_row& a, const tenant_row& b) {
                                       return edits(a.name, given) < edits(b.name, given);
                                     });
  return fmt::format("tenants[{}].{}", key.place, best->name);
}

}  // namespace moetier::config
