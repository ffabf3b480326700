#include "coordinator/core/tier_balance.hpp"

#include <algorithm>
#include <numeric>

#include "eplb/balance/balance.hpp"
#include "eplb/balance/bound.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::coordinator {
namespace {

layer_balance of_layer(const transport::routing_snapshot& s, const window_loads& window,
                       std::size_t layer) {
  const eplb::placement& p = s.placement;
  layer_balance b{.layer = p.layers()[layer].layer};
  std::vector<std::uint64_t> experts(p.experts(), 0);
  std::vector<double> realised;
  std::uint32_t live_slots = 0;
  std::vector<std::size_t> live;
  for (std::size_t w = 0; w < p.spans().size(); ++w) {
    const std::uint32_t slots = p.spans()[w].slots;
    const std::size_t first = layer * slots;
    double load = 0;
    for (std::uint32_t i = 0; first + i < window.served[w].size() && i < slots; ++i) {
      const std::int32_t expert = p.layers()[layer].experts[p.first_dense(w) + i];
      if (expert < 0) continue;
      experts[static_cast<std::size_t>(expert)] += window.served[w][first + i];
      load += static_cast<double>(window.served[w][first + i]);
    }
    if (!s.workers[w].live) continue;
    live.push_back(w);
    live_slots += slots;
    realised.push_back(load);
  }
  b.loaded = std::any_of(realised.begin(), realised.end(), [](double x) { return x > 0; });
  if (!b.loaded) return b;
  std::vector<double> planned;
  const auto units = s.shares.units(layer);
  for (const std::size_t w : live) {
    double load = 0;
    for (std::uint32_t i = 0; i < p.spans()[w].slots; ++i) {
      const std::uint32_t dense = p.first_dense(w) + i;
      const std::int32_t expert = p.layers()[layer].experts[dense];
      if (expert < 0) continue;
      load += static_cast<double>(experts[static_cast<std::size_t>(expert)]) * units[dense] /
              k_shares_unit;
    }
    planned.push_back(load);
  }
  b.realised = eplb::balancedness(realised);
  b.planned = eplb::balancedness(planned);
  if (live_slots >= p.experts()) {
    const double bound =
        eplb::lower_bound(experts, live_slots, static_cast<std::uint32_t>(live.size()));
    b.optimal = std::min(1.0, eplb::percent_of_optimal(bound, realised) / 100);
  }
  return b;
}

}  // namespace

tier_balance balance_of(const transport::routing_snapshot& snapshot, const window_loads& window) {
  tier_balance all;
  if (window.generation != snapshot.generation ||
      window.served.size() != snapshot.placement.spans().size()) {
    return all;
  }
  for (std::size_t l = 0; l < snapshot.placement.layers().size(); ++l) {
    all.layers.push_back(of_layer(snapshot, window, l));
  }
  return all;
}

tier_balance::summary tier_balance::over(double layer_balance::*what) const {
  summary s;
  double sum = 0;
  std::size_t loaded = 0;
  for (const layer_balance& l : layers) {
    if (!l.loaded) continue;
    sum += l.*what;
    ++loaded;
    s.worst = std::min(s.worst, l.*what);
  }
  if (loaded > 0) s.mean = sum / static_cast<double>(loaded);
  return s;
}

}  // namespace moetier::coordinator
