#pragma once
// The splitmix64 step: the tier's one mixing function (replica choice, seeds). mix(0) =
// E220A8397B1DCDAF. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
// 2014. Thread: any.

#include <cstdint>

namespace moetier {

constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace moetier
