#pragma once
// Quantities as people write them in configuration: durations and sizes always with a unit
// ("200ms", "8GiB"), whole numbers in plain decimal, a restart budget ("3 in 30s"). Parsing is
// exact: no sign, no leading zero, no white space, no rounding, no overflow; what does not fit is
// nothing. Thread: any (pure functions).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/time.hpp"

namespace moetier::config {

struct restart_budget {
  std::uint32_t restarts = 3;
  duration_ns window = 30 * k_second;
  bool operator==(const restart_budget&) const = default;
};

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept;
// ns, us, ms, s, m, h; 0 needs a unit too.
std::optional<duration_ns> parse_duration(std::string_view text) noexcept;
// B, KiB, MiB, GiB, TiB.
std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;
std::optional<restart_budget> parse_budget(std::string_view text) noexcept;

// The shortest text that parses to the same value.
std::string duration_text(duration_ns d);
std::string size_text(std::uint64_t bytes);
std::string budget_text(const restart_budget& b);

}  // namespace moetier::config
