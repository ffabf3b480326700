#include "eplb/planner/cold_plan.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "eplb/limits.hpp"
#include "eplb/planner/group_wrap.hpp"
#include "eplb/planner/reference_global.hpp"
#include "eplb/planner/swap.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

unexpected_error refuse(const std::string& what) { return fail(reason::placement_invalid, what); }

double fullest(std::span<const std::uint64_t> loads, const slot_layout& layout,
               const planned_layer& planned) {
  const auto x = planned_loads(loads, layout, planned.slots, planned.units);
  return *std::max_element(x.begin(), x.end());
}

}  // namespace

std::string_view plan_method_name(plan_method m) noexcept {
  constexpr std::array<std::string_view, 3> names{"window_wrap", "group_wrap", "greedy_swap"};
  return names[static_cast<std::size_t>(m)];
}

planned_layer cold_planner::greedy(std::span<const std::uint64_t> loads, const slot_layout& layout,
                                   spare_fill fill) {
  planned_layer out{reference_distinct(loads, layout), {}, plan_method::greedy_swap};
  swap_slots(loads, layout, out.slots);
  split_problem p{.layout = &layout, .slots = out.slots, .loads = loads};
  // Nothing has been copied yet, so moves are free.
  repairer_.repair(p, out.slots,
                   {.copies_max = layout.slots(), .start = 1, .stop = 1, .rewrite = true});
  fill_spares(loads, layout, fill, out.slots);
  split_.solve(p);
  out.units.resize(layout.slots());
  split_.shares(p, out.units);
  return out;
}

expected<planned_layer> cold_planner::plan(std::span<const std::uint64_t> loads,
                                           const slot_layout& layout, std::uint32_t min_replicas) {
  const auto experts = static_cast<std::uint32_t>(loads.size());
  if (experts == 0 || experts > k_experts_max)
    return refuse(fmt::format("{} experts; 1 to {} are allowed", experts, k_experts_max));
  if (layout.slots() < experts) {
    return refuse(
        fmt::format("{} slots per layer cannot hold {} experts", layout.slots(), experts));
  }
  for (std::uint32_t e = 0; e < experts; ++e) {
    if (loads[e] > k_load_max / layout.workers()) {
      return refuse(fmt::format("the load of expert {} is {}; at most {} over {} workers", e,
                                loads[e], k_load_max / layout.workers(), layout.workers()));
    }
  }
  const spare_fill fill = min_replicas > 1 ? spare_fill::survival : spare_fill::load;
  if (auto wrapped = window_wrap(loads, layout, fill)) {
    auto units = units_of(wrapped->slots, wrapped->amounts, experts);
    return planned_layer{std::move(wrapped->slots), std::move(units), plan_method::window_wrap};
  }
  planned_layer out = greedy(loads, layout, fill);
  if (auto grouped = group_wrap(loads, layout, fill)) {
    planned_layer other{std::move(grouped->slots), std::move(grouped->units),
                        plan_method::group_wrap};
    if (fullest(loads, layout, other) <= fullest(loads, layout, out)) return other;
  }
  return out;
}

std::vector<double> planned_loads(std::span<const std::uint64_t> loads, const slot_layout& layout,
                                  std::span<const std::int32_t> slots,
                                  std::span<const std::uint32_t> units) {
  std::vector<double> x(layout.workers(), 0);
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    if (slots[s] < 0) continue;
    x[layout.worker_of(s)] +=
        static_cast<double>(loads[static_cast<std::size_t>(slots[s])]) * units[s] / k_shares_unit;
  }
  return x;
}

}  // namespace moetier::eplb
