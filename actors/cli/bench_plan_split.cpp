#include <fmt/core.h>

#include "actors/cli/bench_kernels_timing.hpp"
#include "actors/cli/bench_plan.hpp"
#include "actors/cli/bench_plan_loads.hpp"
#include "eplb/planner/cold_plan.hpp"
#include "eplb/split/primary_replicas.hpp"
#include "eplb/split/robust_shares.hpp"
#include "eplb/split/slot_time.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::cli {
namespace {

constexpr bench_shape_of_plan k_shapes[] = {
    {256, 288, 32}, {256, 264, 8}, {256, 320, 64}, {128, 144, 8}, {32, 40, 4}};
constexpr std::uint32_t k_layers = 16;
constexpr std::uint32_t k_ring = 12;

}  // namespace

expected<std::vector<split_row>> bench_split(const plan_bench_options& o) {
  std::vector<split_row> rows;
  for (const bench_shape_of_plan& shape : k_shapes) {
    const eplb::slot_layout layout = *eplb::slot_layout::even(shape.workers, shape.slots);
    // Placed by one load, split by others.
    const auto placed = synthetic_loads(1.0, 0, shape.experts, k_layers, o.seed);
    std::mt19937_64 random(o.seed);
    std::lognormal_distribution<double> noise(0, 0.3);
    eplb::cold_planner planner;
    std::vector<eplb::planned_layer> plans;
    std::vector<std::vector<std::vector<std::uint64_t>>> samples(k_layers);
    for (std::uint32_t l = 0; l < k_layers; ++l) {
      auto plan = planner.plan(placed[l], layout);
      MOETIER_ASSERT(plan.has_value());
      plans.push_back(std::move(*plan));
      for (std::uint32_t v = 0; v < k_ring; ++v) {
        samples[l].push_back(placed[l]);
        for (auto& w : samples[l].back())
          w = static_cast<std::uint64_t>(static_cast<double>(w) * noise(random));
      }
    }
    split_row row{.shape = shape_name(shape)};
    row.wrap_us = median_ns(o.repeat, k_layers,
                            [&] {
                              for (const auto& w : placed)
                                MOETIER_ASSERT(eplb::window_wrap(w, layout).has_value());
                            }) /
                  1000;
    eplb::exact_split split;
    std::vector<std::uint32_t> units(layout.slots());
    row.exact_us =
        median_ns(o.repeat, k_layers,
                  [&] {
                    for (std::uint32_t l = 0; l < k_layers; ++l) {
                      const eplb::split_problem p{
                          .layout = &layout, .slots = plans[l].slots, .loads = samples[l][0]};
                      split.solve(p);
                      split.shares(p, units);
                    }
                  }) /
        1000;
    eplb::robust_shares robust;
    std::vector<std::vector<eplb::load_sample>> rings(k_layers);
    for (std::uint32_t l = 0; l < k_layers; ++l)
      for (const auto& s : samples[l]) rings[l].push_back({s, rings[l].size() < 8 ? 1U : 2U});
    row.robust_us =
        median_ns(o.repeat, k_layers,
                  [&] {
                    for (std::uint32_t l = 0; l < k_layers; ++l) {
                      auto shares = plans[l].units;
                      robust.solve({.layout = &layout, .slots = plans[l].slots, .loads = {}},
                                   rings[l], shares);
                    }
                  }) /
        1000;
    rows.push_back(row);
  }
  return rows;
}

expected<std::vector<small_batch_row>> bench_small_batch(const plan_bench_options& o) {
  constexpr std::uint32_t k_top_k = 8;
  constexpr std::uint32_t k_steps = 64;
  const bench_shape_of_plan shape{256, 288, 32};
  const eplb::slot_layout layout = *eplb::slot_layout::even(shape.workers, shape.slots);
  const auto loads = synthetic_loads(1.0, 0, shape.experts, k_layers, o.seed);
  std::vector<small_batch_row> rows;
  for (const std::uint32_t tokens : {64U, 256U, 1024U}) {
    small_batch_row row{.shape = shape_name(shape), .tokens = tokens};
    std::mt19937_64 random(o.seed + tokens);
    eplb::cold_planner planner;
    for (const auto& w : loads) {
      const auto plan = planner.plan(w, layout);
      MOETIER_ASSERT(plan.has_value());
      const auto primary = eplb::primary_replicas(
          {.layout = &layout, .slots = plan->slots, .loads = w}, std::uint64_t{tokens} * k_top_k);
      std::discrete_distribution<std::size_t> expert(w.begin(), w.end());
      std::uniform_int_distribution<std::uint32_t> uniform(0, 65535);
      std::vector<std::vector<std::uint32_t>> hosts(w.size());
      for (std::uint32_t s = 0; s < layout.slots(); ++s)
        if (plan->slots[s] >= 0) hosts[static_cast<std::size_t>(plan->slots[s])].push_back(s);
      for (std::uint32_t step = 0; step < k_steps; ++step) {
        std::vector<std::uint64_t> balanced(layout.slots(), 0), single(layout.slots(), 0);
        for (std::uint32_t i = 0; i < tokens * k_top_k; ++i) {
          const std::size_t e = expert(random);
          std::uint32_t u = uniform(random);
          for (const std::uint32_t s : hosts[e]) {
            single[s] += primary[s] > 0 ? 1 : 0;
            if (u < plan->units[s]) {
              ++balanced[s];
              u = 65536;  // chosen
            } else if (u < 65536) {
              u -= plan->units[s];
            }
          }
        }
        row.balanced_us += eplb::longest_us(balanced, layout, {}) / (k_steps * k_layers);
        row.primary_us += eplb::longest_us(single, layout, {}) / (k_steps * k_layers);
      }
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace moetier::cli
