#include "eplb/split/primary_replicas.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {

std::vector<std::uint32_t> primary_replicas(const split_problem& p, std::uint64_t selections) {
  const slot_layout& layout = *p.layout;
  MOETIER_ASSERT(p.slots.size() == layout.slots());
  double total = 0;
  for (const std::uint64_t w : p.loads) total += static_cast<double>(w);
  const auto chance = [&](std::uint32_t e) {
    if (total == 0) return 0.0;
    const double miss = 1 - static_cast<double>(p.loads[e]) / total;
    return 1 - std::pow(miss, static_cast<double>(selections));
  };
  std::vector<std::vector<std::uint32_t>> hosts(p.loads.size());
  for (std::uint32_t s = 0; s < p.slots.size(); ++s) {
    const std::uint32_t g = layout.worker_of(s);
    if (p.slots[s] >= 0 && (p.live.empty() || p.live[g] != 0))
      hosts[static_cast<std::size_t>(p.slots[s])].push_back(s);
  }
  std::vector<std::uint32_t> order(p.loads.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const bool one_a = hosts[a].size() == 1;
    const bool one_b = hosts[b].size() == 1;
    return one_a != one_b ? one_a : !one_a && p.loads[a] > p.loads[b];
  });
  std::vector<double> active(layout.workers(), 0);
  std::vector<std::uint32_t> units(p.slots.size(), 0);
  for (const std::uint32_t e : order) {
    if (hosts[e].empty()) continue;
    const std::uint32_t primary =
        *std::min_element(hosts[e].begin(), hosts[e].end(), [&](std::uint32_t a, std::uint32_t b) {
          return active[layout.worker_of(a)] < active[layout.worker_of(b)];
        });
    units[primary] = k_shares_unit;
    active[layout.worker_of(primary)] += chance(e);
  }
  return units;
}

}  // namespace moetier::eplb
