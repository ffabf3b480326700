#pragma once
// Small decode batches: weights dominate, so every expert sends all its rows to one primary
// replica, and primaries are spread so that each worker is likely to touch few slots. A second
// share table beside the balanced one. Thread: any (a pure function).

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/split/exact_split.hpp"

namespace moetier::eplb {

// Units by slot: 65,536 for the primary, 0 elsewhere; none for experts without a live replica.
// `selections` of one step over the layer. Experts with one live host first, then by falling chance
// to be active, to their host with the least sum of chances.
std::vector<std::uint32_t> primary_replicas(const split_problem& p, std::uint64_t selections);

}  // namespace moetier::eplb
