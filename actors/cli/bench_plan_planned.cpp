#include <algorithm>

#include <fmt/core.h>

#include "actors/cli/bench_kernels_timing.hpp"
#include "actors/cli/bench_plan.hpp"
#include "actors/cli/bench_plan_loads.hpp"
#include "actors/cli/plan_loads.hpp"
#include "eplb/balance/balance.hpp"
#include "eplb/planner/model_plan.hpp"
#include "eplb/planner/cold_plan.hpp"
#include "eplb/planner/reference_global.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::cli {
namespace {

constexpr bench_shape_of_plan k_shapes[] = {{256, 288, 32},  {256, 264, 8},  {256, 320, 64},
                                            {128, 144, 8},   {32, 40, 4},    {256, 288, 72},
                                            {256, 288, 144}, {256, 256, 32}, {256, 288, 32, true}};
constexpr std::uint32_t k_layers = 61;

eplb::slot_layout layout_of(const bench_shape_of_plan& s) {
  if (!s.uneven) return *eplb::slot_layout::even(s.workers, s.slots);
  std::vector<std::uint32_t> each(s.workers, s.slots / s.workers);
  for (std::uint32_t g = 0; g < s.workers; ++g) each[g] += g % 2 == 0 ? 1 : ~std::uint32_t{0};
  return *eplb::slot_layout::make(each);
}

using layer_loads = std::vector<std::vector<std::uint64_t>>;

planned_row measure(const std::string& name, const layer_loads& loads,
                    const bench_shape_of_plan& shape, std::uint32_t repeat) {
  const eplb::slot_layout layout = layout_of(shape);
  planned_row row;
  row.loads = name;
  row.shape = shape_name(shape);
  row.layers = static_cast<std::uint32_t>(loads.size());
  eplb::model_loads model{shape.experts, {}, loads};
  for (std::size_t l = 0; l < loads.size(); ++l)
    model.layers.push_back(layer_id{static_cast<std::uint16_t>(l)});
  const auto ours = eplb::plan_cold(model, layout);
  MOETIER_ASSERT(ours.has_value());
  row.method = eplb::layer_method_name(ours->gains[0].method);
  row.ours_worst = row.greedy_worst = row.feasible_worst = 100;
  const double share = 1 / static_cast<double>(loads.size());
  for (std::size_t l = 0; l < loads.size(); ++l) {
    const auto x = eplb::even_loads(loads[l], layout, eplb::reference_global(loads[l], layout));
    const double greedy = eplb::percent_of_optimal(ours->gains[l].bound, x);
    row.greedy += greedy * share;
    row.greedy_worst = std::min(row.greedy_worst, greedy);
    row.ours += ours->gains[l].percent_of_optimal * share;
    row.ours_worst = std::min(row.ours_worst, ours->gains[l].percent_of_optimal);
    row.feasible += ours->gains[l].percent_of_starved * share;
    row.feasible_worst = std::min(row.feasible_worst, ours->gains[l].percent_of_starved);
    row.none += ours->gains[l].balancedness_without * share;
  }
  const double layers = static_cast<double>(loads.size());
  eplb::cold_planner planner;
  const bool fast = ours->gains[0].method == eplb::layer_method::window_wrap;
  row.ours_61_ms = k_layers / 1e6 * median_ns(fast ? repeat : 1, layers, [&] {
                     for (const auto& w : loads)
                       MOETIER_ASSERT(planner.plan(w, layout).has_value());
                   });
  row.greedy_61_ms = k_layers / 1e6 * median_ns(fast ? repeat : 1, layers, [&] {
                       for (const auto& w : loads)
                         MOETIER_ASSERT(!eplb::reference_global(w, layout).empty());
                     });
  return row;
}

}  // namespace

std::string shape_name(const bench_shape_of_plan& s) {
  return fmt::format("{}/{}/{}{}", s.experts, s.slots, s.workers, s.uneven ? " uneven" : "");
}

expected<std::vector<planned_row>> bench_planned(const plan_bench_options& o) {
  std::vector<planned_row> rows;
  expected<domain_totals> domains = domain_totals{};
  if (!o.domains.empty()) {
    domains = read_domains(o.domains);
    if (!domains) return tl::unexpected(domains.error());
  }
  expected<read_loads> trace = read_loads{};
  if (!o.trace.empty()) {
    trace = loads_from_trace({.trace = o.trace, .experts = o.trace_experts});
    if (!trace) return tl::unexpected(trace.error());
  }
  const auto recorded = [&](const bench_shape_of_plan& shape) {
    return !domains->counts.empty() && wide_layers(*domains, shape.experts) > 0;
  };
  if (!domains->counts.empty() && std::none_of(std::begin(k_shapes), std::end(k_shapes), recorded))
    return fits_no_shape(*domains, o.domains);
  for (const bench_shape_of_plan& shape : k_shapes) {
    for (const double sigma : {0.6, 1.0, 1.4}) {
      rows.push_back(measure(fmt::format("lognormal {}", sigma),
                             synthetic_loads(sigma, 0, shape.experts, k_layers, o.seed), shape,
                             o.repeat));
    }
    for (const double power : {0.6, 1.2}) {
      rows.push_back(measure(fmt::format("zipf {}", power),
                             synthetic_loads(0, power, shape.experts, k_layers, o.seed), shape,
                             o.repeat));
    }
    if (recorded(shape)) {
      rows.push_back(measure("recorded domains",
                             recorded_loads(*domains, shape.experts, k_layers, o.seed), shape,
                             o.repeat));
    }
    if (!trace->loads.counts.empty() && shape.experts == o.trace_experts)
      rows.push_back(measure("recorded ids", trace->loads.counts, shape, o.repeat));
  }
  return rows;
}

}  // namespace moetier::cli
