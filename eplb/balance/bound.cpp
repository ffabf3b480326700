#include "eplb/balance/bound.hpp"

#include <algorithm>

#include "eplb/planner/replication.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::eplb {

double lower_bound(std::span<const std::uint64_t> loads, std::uint32_t slots,
                   std::uint32_t workers) {
  MOETIER_ASSERT(workers > 0);
  double total = 0;
  for (const std::uint64_t w : loads) total += static_cast<double>(w);
  double bound = total / workers;
  // A worker with load <= T serves <= T of one expert, so an expert needs w/T slots: the greedy
  // replication reaches the least max w/r exactly.
  const auto replicas = replicate(loads, slots);
  for (std::size_t e = 0; e < loads.size(); ++e)
    bound = std::max(bound, static_cast<double>(loads[e]) / replicas[e]);
  return bound;
}

}  // namespace moetier::eplb
