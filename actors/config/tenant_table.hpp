#pragma once
// The keys of tenants: a list, so its keys carry a place, `tenants[0].weight`. In YAML it is a list
// of mappings, in the environment MOETIER_TENANTS_0_WEIGHT. Beside it stands key_table, for all
// keys that exist once. Thread: any (constants, pure functions).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/config/settings.hpp"

namespace moetier::config {

inline constexpr std::size_t k_tenants_max = 64;

struct tenant_row {
  std::string_view name;     // "weight"
  std::string_view allowed;  // for people: type and range
  std::string_view help;
  // Writes the value if the text is a legal one; false = it is not.
  bool (*put)(tenant_settings&, std::string_view text);
  std::string (*show)(const tenant_settings&);
};

std::span<const tenant_row> tenant_table() noexcept;

struct tenant_key {
  std::size_t place = 0;  // in the list, below k_tenants_max
  std::string_view name;  // what follows the dot; maybe no known one
};
// "tenants[3].weight"; nothing if the key has another form.
std::optional<tenant_key> tenant_key_of(std::string_view key) noexcept;
const tenant_row* find_tenant_row(std::string_view name) noexcept;
// The known key of that place with the fewest edits to the given name.
std::string nearest_tenant_key(const tenant_key& key);

}  // namespace moetier::config
