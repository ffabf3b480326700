#include "eplb/planner/cold_plan.hpp"

#include <gtest/gtest.h>

#include "eplb/balance/balance.hpp"
#include "eplb/balance/bound.hpp"
#include "eplb/balance/starved_bound.hpp"
#include "eplb/limits.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

double percent(const std::vector<std::uint64_t>& w, const slot_layout& layout,
               const planned_layer& plan) {
  return percent_of_optimal(lower_bound(w, layout.slots(), layout.workers()),
                            planned_loads(w, layout, plan.slots, plan.units));
}

TEST(cold_plan, reaches_the_bound_where_wrap_applies) {
  cold_planner planner;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto w = random_loads(seed % 2 == 0 ? load_kind::lognormal : load_kind::zipf, 256, seed);
    const slot_layout layout = *slot_layout::even(32, 288);
    const auto plan = planner.plan(w, layout);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->method, plan_method::window_wrap);
    EXPECT_GE(percent(w, layout, *plan), 99.95) << "seed " << seed;
  }
}

TEST(cold_plan, comes_near_what_few_or_no_spare_slots_allow) {
  cold_planner planner;
  for (const std::uint64_t seed : {4U, 5U, 6U, 11U, 12U, 13U}) {  // lognormal, sigma 1.0 to 1.2
    const auto w = random_loads(load_kind::lognormal, 256, seed);
    for (const auto& [slots, workers, least] :
         {std::tuple{288U, 72U, 99.8}, {288U, 144U, 99.0}, {256U, 32U, 99.0}}) {
      const slot_layout layout = *slot_layout::even(workers, slots);
      const auto plan = planner.plan(w, layout);
      ASSERT_TRUE(plan.has_value());
      EXPECT_GE(percent_of_optimal(starved_bound(w, layout),
                                   planned_loads(w, layout, plan->slots, plan->units)),
                least)
          << "seed " << seed << " slots " << slots;
    }
  }
}

TEST(cold_plan, goes_without_groups_where_slots_are_very_uneven) {
  std::vector<std::uint32_t> counts(32, 10);
  for (std::size_t g = 0; g < counts.size(); g += 2) counts[g] = 8;
  const slot_layout layout = *slot_layout::make(counts);
  const auto w = random_loads(load_kind::lognormal, 256, 4);
  cold_planner planner;
  const auto plan = planner.plan(w, layout);
  EXPECT_EQ(plan->method, plan_method::greedy_swap);
  EXPECT_GE(percent(w, layout, *plan), 99.9);
}

TEST(cold_plan, plans_a_lost_worker_away) {
  cold_planner planner;
  const auto w = random_loads(load_kind::lognormal, 256, 3);
  const slot_layout layout = *slot_layout::even(31, 279);
  EXPECT_GE(percent(w, layout, *planner.plan(w, layout)), 99.97);
}

TEST(cold_plan, refuses_what_is_out_of_bounds) {
  cold_planner planner;
  const std::vector<std::uint64_t> w(4, 1);
  EXPECT_EQ(planner.plan(w, *slot_layout::even(3, 3)).error().text,
            "placement: 3 slots per layer cannot hold 4 experts");
  std::vector<std::uint64_t> heavy(4, k_load_max / 2);
  EXPECT_TRUE(planner.plan(heavy, *slot_layout::even(2, 6)).has_value());
  ++heavy[2];
  EXPECT_EQ(planner.plan(heavy, *slot_layout::even(2, 6)).error().text,
            "placement: the load of expert 2 is 4611686018427387904; at most 4611686018427387903 "
            "over 2 workers");
  EXPECT_FALSE(
      planner.plan(std::vector<std::uint64_t>(4097, 1), *slot_layout::even(8, 5000)).has_value());
}

}  // namespace
}  // namespace moetier::eplb
