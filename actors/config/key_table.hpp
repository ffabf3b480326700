#pragma once
// The table of configuration keys: for each its place in `settings`, its type and range, its flag
// and one line of help. Loader, --print-config, --help and the documentation read this one table.
// Thread: any (constant).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/config/settings.hpp"

namespace moetier::config {

// Which commands offer the key's flag.
inline constexpr unsigned k_up = 1, k_coordinator = 2, k_worker = 4, k_doctor = 8;

struct key_row {
  std::string_view key;
  std::string_view flag;  // "" = none of its own (--set KEY=VALUE reaches every key)
  unsigned commands;
  std::string_view allowed;  // for people: type and range
  std::string_view help;
  // Writes the value if the text is a legal one; false = it is not.
  bool (*put)(settings&, std::string_view text);
  // The value as text that put() takes.
  std::string (*show)(const settings&);
};

std::span<const key_row> key_table() noexcept;
const key_row* find_key(std::string_view key) noexcept;
// The known key with the fewest edits to the given one.
std::string_view nearest_key(std::string_view key) noexcept;
std::size_t edits(std::string_view a, std::string_view b);

}  // namespace moetier::config
