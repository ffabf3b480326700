#pragma once
// How many replicas each expert gets, as the reference greedy does: all experts one, then one more,
// again and again, to the expert with the largest load per replica; of equals the larger id (with a
// cap, which is ours, the smaller one). No load at all: as evenly as possible, the first ids one
// more. Thread: any (a pure function).

#include <cstdint>
#include <span>
#include <vector>

namespace moetier::eplb {

inline constexpr std::uint32_t k_uncapped = 0xffffffffU;

// Sums to `slots`, or to experts * cap if that is less. Requires: slots >= loads.size() > 0,
// cap > 0.
std::vector<std::uint32_t> replicate(std::span<const std::uint64_t> loads, std::uint32_t slots,
                                     std::uint32_t cap = k_uncapped);

}  // namespace moetier::eplb
