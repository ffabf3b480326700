#include "eplb/planner/swap.hpp"

#include <algorithm>
#include <vector>

#include "eplb/planner/reference_global.hpp"

namespace moetier::eplb {
namespace {

constexpr std::uint32_t k_rounds_max = 400;

}  // namespace

std::uint32_t swap_slots(std::span<const std::uint64_t> loads, const slot_layout& layout,
                         std::span<std::int32_t> slots) {
  std::vector<std::uint32_t> replicas(loads.size(), 0);
  for (const std::int32_t e : slots) {
    if (e >= 0) ++replicas[static_cast<std::size_t>(e)];
  }
  const auto size = [&](std::uint32_t slot) {
    if (slots[slot] < 0) return 0.0;
    const auto e = static_cast<std::size_t>(slots[slot]);
    return static_cast<double>(loads[e]) / replicas[e];
  };
  std::vector<double> load = even_loads(loads, layout, slots);
  std::vector<std::uint8_t> has(std::size_t{layout.workers()} * loads.size(), 0);
  const auto held = [&](std::uint32_t g, std::int32_t e) -> std::uint8_t& {
    return has[g * loads.size() + static_cast<std::size_t>(e)];
  };
  for (std::uint32_t s = 0; s < slots.size(); ++s)
    if (slots[s] >= 0) held(layout.worker_of(s), slots[s]) = 1;

  std::uint32_t rounds = 0;
  for (; rounds < k_rounds_max; ++rounds) {
    const auto full =
        static_cast<std::uint32_t>(std::max_element(load.begin(), load.end()) - load.begin());
    double best_larger = load[full] * (1 - 1e-9);
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool found = false;
    for (std::uint32_t s = layout.first(full); s < layout.first(full) + layout.count(full); ++s) {
      if (slots[s] < 0) continue;
      const double own = size(s);
      for (std::uint32_t t = 0; t < slots.size(); ++t) {
        const std::uint32_t g = layout.worker_of(t);
        const double gain = own - size(t);
        if (g == full || gain <= 0) continue;
        const double larger = std::max(load[full] - gain, load[g] + gain);
        if (larger >= best_larger || held(g, slots[s]) != 0) continue;
        if (slots[t] >= 0 && held(full, slots[t]) != 0) continue;
        best_larger = larger;
        from = s;
        to = t;
        found = true;
      }
    }
    if (!found) break;
    const std::uint32_t g = layout.worker_of(to);
    const double gain = size(from) - size(to);
    load[full] -= gain;
    load[g] += gain;
    held(full, slots[from]) = 0;
    held(g, slots[from]) = 1;
    if (slots[to] >= 0) {
      held(g, slots[to]) = 0;
      held(full, slots[to]) = 1;
    }
    std::swap(slots[from], slots[to]);
  }
  return rounds;
}

}  // namespace moetier::eplb
