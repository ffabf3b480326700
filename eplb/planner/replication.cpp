#include "eplb/planner/replication.hpp"

#include <algorithm>
#include <queue>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {

std::vector<std::uint32_t> replicate(std::span<const std::uint64_t> loads, std::uint32_t slots,
                                     std::uint32_t cap) {
  const auto experts = static_cast<std::uint32_t>(loads.size());
  MOETIER_ASSERT(experts > 0 && slots >= experts && cap > 0);
  std::vector<std::uint32_t> replicas(experts, 1);
  if (slots == experts || cap == 1) return replicas;
  if (std::all_of(loads.begin(), loads.end(), [](std::uint64_t w) { return w == 0; })) {
    for (std::uint32_t e = 0; e < experts; ++e)
      replicas[e] = std::min(cap, slots / experts + (e < slots % experts ? 1 : 0));
    return replicas;
  }
  // A pair compares by load per replica, then by rank: the id itself, or where replicas are capped
  // the rank from behind, so that the smaller id goes first.
  using entry = std::pair<double, std::uint32_t>;
  const auto flip = [&](std::uint32_t e) { return cap == k_uncapped ? e : experts - 1 - e; };
  std::vector<entry> first;
  first.reserve(experts);
  for (std::uint32_t e = 0; e < experts; ++e)
    first.emplace_back(static_cast<double>(loads[e]), flip(e));
  std::priority_queue<entry> queue(std::less<entry>{}, std::move(first));
  for (std::uint32_t given = experts; given < slots && !queue.empty(); ++given) {
    const std::uint32_t e = flip(queue.top().second);
    queue.pop();
    if (++replicas[e] < cap)
      queue.emplace(static_cast<double>(loads[e]) / static_cast<double>(replicas[e]), flip(e));
  }
  return replicas;
}

}  // namespace moetier::eplb
