#include "eplb/planner/model_plan.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "eplb/balance/balance.hpp"
#include "eplb/balance/bound.hpp"
#include "eplb/balance/starved_bound.hpp"
#include "eplb/migration/slot_copy.hpp"
#include "eplb/placement.hpp"
#include "eplb/plan_check.hpp"
#include "eplb/planner/cold_plan.hpp"
#include "eplb/planner/reference_global.hpp"

namespace moetier::eplb {
namespace {

unexpected_error refuse(const std::string& what) { return fail(reason::placement_invalid, what); }

// Every expert once, in order, as evenly as it goes.
double without_plan(std::span<const std::uint64_t> loads, std::uint32_t workers) {
  std::vector<std::uint64_t> x(workers, 0);
  const auto sizes = even_partition(static_cast<std::uint32_t>(loads.size()), workers);
  std::size_t e = 0;
  for (std::uint32_t g = 0; g < workers; ++g)
    for (std::uint32_t i = 0; i < sizes[g]; ++i) x[g] += loads[e++];
  return balancedness(std::span<const std::uint64_t>(x));
}

std::vector<std::uint32_t> units_or_even(const draft_layer& l, std::uint32_t experts) {
  if (!l.units.empty()) return l.units;
  std::vector<std::uint64_t> ones(l.slots.size());
  for (std::size_t s = 0; s < ones.size(); ++s) ones[s] = l.slots[s] >= 0 ? 1 : 0;
  return units_of(l.slots, ones, experts);
}

layer_gain gain_of(const model_loads& loads, std::size_t i, const slot_layout& layout,
                   const draft_layer& planned) {
  const auto& w = loads.counts[i];
  layer_gain g;
  g.layer = loads.layers[i];
  g.loaded = std::any_of(w.begin(), w.end(), [](std::uint64_t v) { return v > 0; });
  const auto x = planned_loads(w, layout, planned.slots, units_or_even(planned, loads.experts));
  g.bound = lower_bound(w, layout.slots(), layout.workers());
  g.balancedness_without = without_plan(w, layout.workers());
  g.balancedness = balancedness(std::span<const double>(x));
  g.percent_of_optimal = percent_of_optimal(g.bound, x);
  g.starved_bound = starved_bound(w, layout);
  g.percent_of_starved = percent_of_optimal(g.starved_bound, x);
  return g;
}

expected<slot_layout> layout_for(const model_loads& loads, const plan_draft& before) {
  if (before.experts != loads.experts) {
    return refuse(fmt::format("the plan is of {} experts; the loads are of {}", before.experts,
                              loads.experts));
  }
  if (before.layers.size() != loads.layers.size()) {
    return refuse(fmt::format("the plan has {} layers; the loads have {}", before.layers.size(),
                              loads.layers.size()));
  }
  for (std::size_t i = 0; i < loads.layers.size(); ++i) {
    if (before.layers[i].layer != loads.layers[i]) {
      return refuse(fmt::format("the plan's layer {} is number {}; the loads' is number {}", i,
                                before.layers[i].layer.value, loads.layers[i].value));
    }
  }
  std::vector<std::uint64_t> flat;
  for (const auto& w : loads.counts) flat.insert(flat.end(), w.begin(), w.end());
  auto fits = check_plan(
      before, {.slots_per_worker = before.slots_per_worker, .uneven_allowed = true, .loads = flat});
  if (!fits) return unexpected_error(fits.error());
  return slot_layout::make(before.slots_per_worker);
}

layer_method method_of(plan_method m) {
  switch (m) {
    case plan_method::window_wrap: return layer_method::window_wrap;
    case plan_method::group_wrap: return layer_method::group_wrap;
    case plan_method::greedy_swap: break;
  }
  return layer_method::greedy_swap;
}

struct repaired_layer {
  std::vector<std::int32_t> slots;
  repair_outcome outcome;

  double gain_per_copy() const {
    if (outcome.moves.empty()) return 0;
    return (outcome.limit_before - outcome.limit_after) / outcome.bound /
           static_cast<double>(outcome.moves.size());
  }
};

}  // namespace

std::string_view layer_method_name(layer_method m) noexcept {
  constexpr std::string_view names[] = {"window_wrap", "group_wrap", "greedy_swap", "kept",
                                        "repaired"};
  return names[static_cast<std::size_t>(m)];
}

expected<model_plan> plan_cold(const model_loads& loads, const slot_layout& layout,
                               std::uint32_t min_replicas) {
  model_plan out;
  out.draft.experts = loads.experts;
  for (std::uint32_t g = 0; g < layout.workers(); ++g)
    out.draft.slots_per_worker.push_back(layout.count(g));
  cold_planner planner;
  for (std::size_t i = 0; i < loads.layers.size(); ++i) {
    auto planned = planner.plan(loads.counts[i], layout, min_replicas);
    if (!planned) return unexpected_error(planned.error());
    out.draft.layers.push_back(
        {loads.layers[i], std::move(planned->slots), std::move(planned->units)});
    out.gains.push_back(gain_of(loads, i, layout, out.draft.layers.back()));
    out.gains.back().method = method_of(planned->method);
  }
  return out;
}

expected<model_plan> judge_plan(const model_loads& loads, const plan_draft& plan) {
  const auto layout = layout_for(loads, plan);
  if (!layout) return unexpected_error(layout.error());
  model_plan out;
  out.draft = plan;
  for (std::size_t i = 0; i < loads.layers.size(); ++i) {
    out.gains.push_back(gain_of(loads, i, *layout, plan.layers[i]));
    out.gains.back().balancedness_before = out.gains.back().balancedness;
    out.gains.back().method = layer_method::kept;
  }
  return out;
}

expected<model_plan> plan_by_repair(const model_loads& loads, const plan_draft& before,
                                    const repair_budget& budget) {
  const auto judged = judge_plan(loads, before);
  if (!judged) return unexpected_error(judged.error());
  const slot_layout layout = *slot_layout::make(before.slots_per_worker);
  repairer repairer;
  const auto repair = [&](std::size_t i, std::uint64_t copies) {
    repaired_layer r{before.layers[i].slots, {}};
    const auto most =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(copies, budget.copies_per_layer));
    r.outcome = repairer.repair({.layout = &layout, .slots = {}, .loads = loads.counts[i]}, r.slots,
                                {.copies_max = most});
    return r;
  };
  std::vector<repaired_layer> layers;
  for (std::size_t i = 0; i < loads.layers.size(); ++i)
    layers.push_back(repair(i, budget.copies_total));

  // Layers that win most per copy keep their moves; the last one that does not fit gets what is
  // left.
  std::vector<std::size_t> order(layers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return layers[a].gain_per_copy() > layers[b].gain_per_copy();
  });
  std::uint64_t left = budget.copies_total;
  for (const std::size_t i : order) {
    if (layers[i].outcome.moves.size() > left) layers[i] = repair(i, left);
    left -= layers[i].outcome.moves.size();
  }

  model_plan out;
  out.draft = before;
  exact_split split;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    draft_layer& l = out.draft.layers[i];
    for (const slot_move& m : layers[i].outcome.moves)
      out.moves.push_back({l.layer, m.slot, m.expert, m.replaced});
    l.slots = layers[i].slots;
    const split_problem p{.layout = &layout, .slots = l.slots, .loads = loads.counts[i]};
    split.solve(p);
    l.units.resize(l.slots.size());
    split.shares(p, l.units);
    layer_gain g = gain_of(loads, i, layout, l);
    g.balancedness_before = judged->gains[i].balancedness;
    g.copies = copy_count(layout, before.layers[i].slots, l.slots);
    g.copies_reference =
        copy_count(layout, before.layers[i].slots, reference_global(loads.counts[i], layout));
    g.method = layers[i].outcome.moves.empty() ? layer_method::kept : layer_method::repaired;
    out.gains.push_back(g);
  }
  return out;
}

}  // namespace moetier::eplb
