#include "eplb/planner/group_wrap.hpp"

#include <algorithm>

#include "eplb/balance/starved_bound.hpp"
#include "eplb/planner/worker_groups.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

constexpr double k_near = 1.0005;  // of the bound: no further start
// Starts: how heavy a mate is thought, as a rank among the loads, in sixteenths from the lightest.
constexpr std::size_t k_mate_ranks[] = {0, 1, 2, 4, 8};

bool counts_alike(const slot_layout& layout) {
  const std::uint32_t least = layout.count_least();
  for (std::uint32_t g = 0; g < layout.workers(); ++g)
    if (layout.count(g) > least + 1) return false;
  return true;
}

std::vector<worker_group> best_groups(std::span<const std::uint64_t> loads,
                                      const slot_layout& layout) {
  std::vector<std::uint64_t> rising(loads.begin(), loads.end());
  std::sort(rising.begin(), rising.end());
  std::vector<double> mates{0};
  for (const std::size_t rank : k_mate_ranks)
    mates.push_back(static_cast<double>(rising[rank * rising.size() / 16]));

  const double enough = k_near * starved_bound(loads, layout);
  worker_groups trial(loads, layout);
  std::vector<worker_group> best;
  double limit = 0;
  for (const double mate : mates) {
    trial.start(mate);
    trial.improve(enough);
    if (!best.empty() && trial.limit() >= limit) continue;
    limit = trial.limit();
    best.assign(trial.groups().begin(), trial.groups().end());
    if (limit <= enough) break;
  }
  return best;
}

// Window-wrap of one group, written into the layer.
void wrap(worker_group& group, std::span<const std::uint64_t> loads, const slot_layout& layout,
          spare_fill fill, grouped_layer& into) {
  std::sort(group.experts.begin(), group.experts.end());
  std::sort(group.workers.begin(), group.workers.end());
  std::vector<std::uint64_t> own_loads;
  for (const std::uint32_t e : group.experts) own_loads.push_back(loads[e]);
  std::vector<std::uint32_t> counts;
  for (const std::uint32_t g : group.workers) counts.push_back(layout.count(g));
  const slot_layout own = *slot_layout::make(counts);
  const auto wrapped = window_wrap(own_loads, own, fill);
  MOETIER_ASSERT(wrapped.has_value());
  const auto units =
      units_of(wrapped->slots, wrapped->amounts, static_cast<std::uint32_t>(group.experts.size()));
  for (std::uint32_t s = 0; s < own.slots(); ++s) {
    const std::uint32_t g = own.worker_of(s);
    const std::uint32_t slot = layout.first(group.workers[g]) + s - own.first(g);
    const std::int32_t e = wrapped->slots[s];
    into.slots[slot] =
        e < 0 ? -1 : static_cast<std::int32_t>(group.experts[static_cast<std::size_t>(e)]);
    into.units[slot] = units[s];
  }
}

}  // namespace

std::optional<grouped_layer> group_wrap(std::span<const std::uint64_t> loads,
                                        const slot_layout& layout, spare_fill fill) {
  if (layout.slots() + 1 >= loads.size() + layout.workers() || !counts_alike(layout))
    return std::nullopt;
  auto groups = best_groups(loads, layout);
  grouped_layer out{std::vector<std::int32_t>(layout.slots(), -1),
                    std::vector<std::uint32_t>(layout.slots(), 0)};
  for (worker_group& g : groups) wrap(g, loads, layout, fill, out);
  return out;
}

}  // namespace moetier::eplb
