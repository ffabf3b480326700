#pragma once
// The one source of chance of a simulation: a seed gives the same run for ever. Thread: owner.

#include <cstdint>

#include "schemas/base/mix.hpp"

namespace moetier::sim {

class dice final {
 public:
  explicit dice(std::uint64_t seed) : state_(mix(seed)) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    return mix(state_);
  }
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  // True in `parts` of 100,000 throws.
  bool chance(std::uint32_t parts) { return next() % 100'000 < parts; }

 private:
  std::uint64_t state_;
};

}  // namespace moetier::sim
