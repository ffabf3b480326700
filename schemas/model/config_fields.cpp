#include "schemas/model/config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "schemas/file/printable.hpp"

namespace moetier {
namespace {

using json = nlohmann::json;

}  // namespace

unexpected_error unsupported_field(std::string_view field, std::string_view value,
                                   std::string_view supported) {
  return fail(reason::model_unsupported, field, value, supported);
}

std::string json_text(const json& value) {
  const double number = value.is_number_float() ? value.get<double>() : 0.0;
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string shown_value(const json* value) {
  if (value == nullptr) return "missing";
  if (value->is_object()) return "an object";
  if (value->is_array()) return "a list";
  return printable(json_text(*value));
}

std::string config_fields::name(std::string_view key) const {
  return fmt::format("{}{}", prefix_, key);
}

const json* config_fields::locate(std::string_view key) const {
  const json* at = &values_;
  while (true) {
    const std::size_t dot = key.find('.');
    const auto found = at->find(std::string(key.substr(0, dot)));
    if (found == at->end()) return nullptr;
    if (dot == std::string_view::npos) return &*found;
    if (!found->is_object()) return nullptr;
    at = &*found;
    key.remove_prefix(dot + 1);
  }
}

const json* config_fields::find(std::string_view key) const {
  const json* const value = locate(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool config_fields::stands(std::string_view key) const { return locate(key) != nullptr; }

expected<std::uint32_t> config_fields::count(std::string_view key, count_range range,
                                             std::optional<std::uint32_t> absent) const {
  const json* value = find(key);
  if (value == nullptr && absent) return *absent;
  if (value != nullptr && value->is_array() && !value->empty()) {
    const json& first = value->front();
    if (!std::ranges::all_of(*value, [&](const json& one) { return one == first; }))
      return unsupported_field(name(key), "a list of different values",
                               "one number, or a list that repeats it");
    value = &first;
  }
  if (value == nullptr || !value->is_number_unsigned() ||
      value->get<std::uint64_t>() < range.least || value->get<std::uint64_t>() > range.most)
    return unsupported_field(name(key), shown_value(value),
                             fmt::format("{} to {}", range.least, range.most));
  return value->get<std::uint32_t>();
}

expected<std::uint32_t> config_fields::agreed(std::string_view own,
                                              std::span<const std::string_view> known,
                                              count_range range, std::string_view what) const {
  std::optional<std::pair<std::string_view, std::uint32_t>> found;
  std::vector<std::string_view> keys{own};
  std::ranges::copy_if(known, std::back_inserter(keys), [&](auto key) { return key != own; });
  for (const std::string_view key : keys) {
    if (find(key) == nullptr) continue;
    auto value = count(key, range);
    if (!value) return value;
    if (found && found->second != *value)
      return unsupported_field(name(key), fmt::format("{}", *value),
                               fmt::format("{} as {} says", found->second, name(found->first)));
    if (!found) found.emplace(key, *value);
  }
  if (!found) return unsupported_field(name(own), "missing", what);
  return found->second;
}

expected<bool> config_fields::flag(std::string_view key, bool absent) const {
  const json* const value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean())
    return unsupported_field(name(key), shown_value(value), "true or false");
  return value->get<bool>();
}

expected<std::optional<float>> config_fields::real(std::string_view key) const {
  const json* const value = find(key);
  if (value == nullptr) return std::optional<float>();
  const float number = value->is_number() ? value->get<float>() : NAN;
  if (!std::isfinite(number))
    return unsupported_field(name(key), shown_value(value), "a finite number");
  return std::optional<float>(number);
}

expected<void> config_fields::one_of(std::string_view key, std::span<const std::string_view> texts,
                                     bool told) const {
  const json* const value = find(key);
  if (value == nullptr && !told) return {};
  std::vector<std::string_view> named;
  for (const std::string_view text : texts) {
    if (text.empty()) continue;
    if (value != nullptr && value->is_string() && value->get_ref<const std::string&>() == text)
      return {};
    named.push_back(text);
  }
  return unsupported_field(name(key), shown_value(value),
                           named.empty() ? "none" : fmt::format("{}", fmt::join(named, ", ")));
}

}  // namespace moetier
