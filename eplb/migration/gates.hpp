#pragma once
// Whether a repair is worth its bytes, and how many copies a layer may take. Thread: any (pure
// functions).

#include <cstdint>

#include "eplb/load/drift.hpp"

namespace moetier::eplb {

// 2 copies where hardly anything drifts, 32 after a switch, else 8.
constexpr std::uint32_t copies_allowed(double drift, bool switched) noexcept {
  return switched ? 32 : drift < k_mild_drift ? 2 : 8;
}

// Time saved per step over 10,000 steps must pay for the bytes at the bandwidth cap.
constexpr bool worth_its_bytes(double saved_per_step_s, std::uint64_t bytes,
                               double cap_bytes_per_s) noexcept {
  constexpr double k_steps = 10'000;
  return saved_per_step_s * k_steps >= static_cast<double>(bytes) / cap_bytes_per_s;
}

}  // namespace moetier::eplb
