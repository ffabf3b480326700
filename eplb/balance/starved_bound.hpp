#pragma once
// A lower bound that also sees slots: where slots < experts + workers - 1, experts cannot all be
// poured into one another, and a hot one shares its workers with whole others.
//
// Circular flows taken out, the replicas of any placement tie workers and experts into
// C = experts + workers - slots groups without a circle (more groups can be joined at no cost). A
// group of b workers with k slots each then holds b (k - 1) + 1 experts, and b T is at least their
// load. Take s off every expert: what lies above s, cut into pieces of T - (k - 1) s, must not need
// more than slots - experts extra workers over all groups, even if what the lighter experts lack of
// s is spent where it saves most. Every s gives a bound; the loads themselves are tried.
// Thread: any (a pure function).

#include <cstdint>
#include <span>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

// At least lower_bound() of the same loads, and equal to it unless slots < experts + workers - 1.
// Requires: layout.slots() >= loads.size() > 0.
double starved_bound(std::span<const std::uint64_t> loads, const slot_layout& layout);

}  // namespace moetier::eplb
