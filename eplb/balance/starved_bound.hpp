#pragma once
// A lower bound that also sees slots: where slots < experts + workers - 1, experts cannot all be
// poured into one another, and a hot one shares its workers with whole others.
//
// Circular flows taken out, the replicas of any placement tie workers and experts into
// C = experts + workers - slots groups without a circle (more of them can be joined at no cost), so
// a group of b workers with k slots each holds b (k - 1) + 1 experts, whose load b workers serve.
// Take s off every expert: b T >= (b (k - 1) + 1) s + what lies above s - what lies below it. So
// what lies above, cut into pieces of T - (k - 1) s, must not need more extra workers over all
// groups than slots - experts, even if all that lies below s is spent where it saves most.
// Every s gives a bound; s = 0 gives lower_bound. Thread: any (a pure function).

#include <cstdint>
#include <span>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

// At least lower_bound() of the same loads, and equal to it unless slots < experts + workers - 1.
// Requires: layout.slots() >= loads.size() > 0.
double starved_bound(std::span<const std::uint64_t> loads, const slot_layout& layout);

}  // namespace moetier::eplb
