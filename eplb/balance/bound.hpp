#pragma once
// The least load that the fullest worker can have, whatever the placement and the split: the mean,
// or the load per replica that even the best replication leaves. Thread: any (a pure function).

#include <cstdint>
#include <span>

namespace moetier::eplb {

// max( W/G, min over replications of max w/r ). Requires: slots >= loads.size() > 0, workers > 0.
double lower_bound(std::span<const std::uint64_t> loads, std::uint32_t slots,
                   std::uint32_t workers);

}  // namespace moetier::eplb
