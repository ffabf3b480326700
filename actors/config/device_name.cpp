#include "actors/config/device_name.hpp"

#include <fmt/core.h>

#include "actors/config/quantity.hpp"

namespace moetier::config {

std::optional<device_name> parse_device(std::string_view text) noexcept {
  if (text == "auto" || text == "cpu") return device_name{};
  if (text == "cuda") return device_name{.cuda = true};
  constexpr std::string_view k_numbered = "cuda:";
  if (!text.starts_with(k_numbered)) return std::nullopt;
  const auto number = parse_count(text.substr(k_numbered.size()));
  if (!number || *number >= k_devices_max) return std::nullopt;
  return device_name{.cuda = true, .ordinal = static_cast<std::int32_t>(*number)};
}

std::string device_of_worker(const device_name& wish, std::uint32_t number, std::uint32_t devices) {
  return fmt::format("cuda:{}", wish.ordinal < 0 ? number % devices : wish.ordinal_or_first());
}

}  // namespace moetier::config
