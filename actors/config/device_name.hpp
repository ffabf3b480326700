#pragma once
// What worker.device names: the processor, or a CUDA device by number. Thread: any (values).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moetier::config {

inline constexpr std::uint32_t k_devices_max = 64;  // of one machine

struct device_name {
  bool cuda = false;
  std::int32_t ordinal = -1;  // -1: not given

  std::uint32_t ordinal_or_first() const noexcept {
    return ordinal < 0 ? 0 : static_cast<std::uint32_t>(ordinal);
  }
  bool operator==(const device_name&) const = default;
};

// "auto" and "cpu" are the processor; "cuda", "cuda:3". nullopt: none of them.
std::optional<device_name> parse_device(std::string_view text) noexcept;

// The device of worker `number` of `up`, as text: the one that was named, else each in turn.
// Requires: 0 < devices.
std::string device_of_worker(const device_name& wish, std::uint32_t number, std::uint32_t devices);

}  // namespace moetier::config
