#pragma once
// Swap: evens out a placement whose experts split evenly over their replicas, by exchanging slots
// between the fullest worker and another. The cold start where window-wrap does not apply.
// Thread: any (a pure function).

#include <cstdint>
#include <span>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

// Up to 400 exchanges, each the one that lowers the larger of two workers' loads most; nothing is
// doubled. Returns how many were made. Requires: slots fit the layout, none doubled.
std::uint32_t swap_slots(std::span<const std::uint64_t> loads, const slot_layout& layout,
                         std::span<std::int32_t> slots);

}  // namespace moetier::eplb
