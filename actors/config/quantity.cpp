#include "actors/config/quantity.hpp"

#include <charconv>
#include <limits>
#include <span>

#include <fmt/core.h>

namespace moetier::config {
namespace {

struct unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr unit k_durations[] = {{"ns", 1},       {"us", k_microsecond}, {"ms", k_millisecond},
                                {"s", k_second}, {"m", 60 * k_second},  {"h", 3600 * k_second}};
constexpr unit k_sizes[] = {
    {"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}};

std::optional<std::uint64_t> parse_with_unit(std::string_view text,
                                             std::span<const unit> units) noexcept {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  const auto number = parse_count(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const unit& u : units) {
    if (u.name != text.substr(digits)) continue;
    if (*number > std::numeric_limits<std::uint64_t>::max() / u.factor) return std::nullopt;
    return *number * u.factor;
  }
  return std::nullopt;
}

// In the largest unit that leaves no rest.
std::string largest_unit(std::uint64_t value, std::span<const unit> units) {
  const unit* best = &units.front();
  for (const unit& u : units) {
    if (value != 0 && value % u.factor == 0) best = &u;
  }
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<duration_ns> parse_duration(std::string_view text) noexcept {
  return parse_with_unit(text, k_durations);
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  return parse_with_unit(text, k_sizes);
}

std::optional<restart_budget> parse_budget(std::string_view text) noexcept {
  constexpr std::string_view between = " in ";
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return std::nullopt;
  const auto restarts = parse_count(text.substr(0, at));
  const auto window = parse_duration(text.substr(at + between.size()));
  if (!restarts || *restarts > 1'000'000 || !window || *window == 0) return std::nullopt;
  return restart_budget{static_cast<std::uint32_t>(*restarts), *window};
}

std::string duration_text(duration_ns d) { return d == 0 ? "0s" : largest_unit(d, k_durations); }
std::string size_text(std::uint64_t bytes) { return largest_unit(bytes, k_sizes); }

std::string budget_text(const restart_budget& b) {
  return fmt::format("{} in {}", b.restarts, duration_text(b.window));
}

}  // namespace moetier::config
