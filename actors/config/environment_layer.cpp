#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "actors/config/key_table.hpp"
#include "actors/config/layer.hpp"

namespace moetier::config {
namespace {

std::string variable_of(std::string_view key) {
  std::string name = "MOETIER_";
  for (const char c : key) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

// Kubernetes sets NAME_SERVICE_HOST, NAME_PORT, NAME_PORT_7400_TCP... for each service it knows.
bool is_service_link(std::string_view name) {
  return name.find("_SERVICE_") != std::string_view::npos || name.ends_with("_PORT") ||
         name.find("_PORT_") != std::string_view::npos;
}

bool begins_like_a_section(std::string_view name) {
  return std::any_of(key_table().begin(), key_table().end(), [&](const key_row& row) {
    return name.starts_with(variable_of(row.key.substr(0, row.key.find('.') + 1)));
  });
}

std::string_view nearest_variable_key(std::string_view name) {
  std::string guess;
  for (const char c : name.substr(std::string_view("MOETIER_").size())) {
    guess += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::replace(guess.begin(), guess.end(), '_', '.');
  return nearest_key(guess);
}

// MOETIER_TENANTS_0_WEIGHT -> tenants[0].weight; empty if it is no tenant's variable.
std::string tenant_key_in(std::string_view name) {
  constexpr std::string_view k_tenants = "MOETIER_TENANTS_";
  if (!name.starts_with(k_tenants)) return {};
  name.remove_prefix(k_tenants.size());
  const std::size_t end = name.find('_');
  if (end == 0 || end == std::string_view::npos || !parse_count(name.substr(0, end))) return {};
  std::string key = fmt::format("tenants[{}].", name.substr(0, end));
  for (const char c : name.substr(end + 1)) {
    key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

}  // namespace

expected<layer> read_environment(std::span<const std::string> variables) {
  layer entries;
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || !variable.starts_with("MOETIER_")) continue;
    const std::string name = variable.substr(0, equals);
    if (std::string key = tenant_key_in(name); !key.empty()) {
      entries.push_back({std::move(key), variable.substr(equals + 1), "environment " + name});
      continue;
    }
    const auto row = std::find_if(key_table().begin(), key_table().end(),
                                  [&](const key_row& r) { return variable_of(r.key) == name; });
    if (row != key_table().end()) {
      entries.push_back(
          {std::string(row->key), variable.substr(equals + 1), "environment " + name});
    } else if (begins_like_a_section(name) && !is_service_link(name)) {
      auto unknown =
          make_error(reason::config_unknown_key, name, variable_of(nearest_variable_key(name)));
      unknown.text = "environment: " + unknown.text;
      return tl::unexpected(std::move(unknown));
    }
  }
  return entries;
}

}  // namespace moetier::config
