#pragma once
// What a worker says beside OVERLOADED or TIMEOUT, in the 64 bits of `detail`: the time that would
// go by before the call, and what the call takes itself, both as it predicts them. Thread: any.

#include <algorithm>
#include <cstdint>

#include "schemas/base/time.hpp"

namespace moetier::transport {

struct time_needed {
  duration_ns ahead = 0;  // whole microseconds, at most 2^32 - 1 of them
  duration_ns call = 0;

  bool operator==(const time_needed&) const = default;
};

constexpr std::uint64_t detail_of(const time_needed& t) noexcept {
  const auto us = [](duration_ns d) {
    return std::min<std::uint64_t>(d / k_microsecond, 0xffffffffu);
  };
  return us(t.ahead) << 32 | us(t.call);
}

constexpr time_needed time_needed_in(std::uint64_t detail) noexcept {
  return {.ahead = (detail >> 32) * k_microsecond, .call = (detail & 0xffffffffu) * k_microsecond};
}

}  // namespace moetier::transport
