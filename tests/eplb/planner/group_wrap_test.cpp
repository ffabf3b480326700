#include "eplb/planner/group_wrap.hpp"

#include <gtest/gtest.h>

#include <set>

#include "eplb/balance/balance.hpp"
#include "eplb/balance/starved_bound.hpp"
#include "eplb/planner/cold_plan.hpp"
#include "eplb/planner/reference_global.hpp"
#include "eplb/planner/worker_groups.hpp"
#include "schemas/base/limits.hpp"
#include "tests/eplb/every_placement.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;

double most(const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }

// Every expert placed, none twice on a worker, its units complete, no more slots than there are.
void expect_whole(const loads& w, const slot_layout& layout, const grouped_layer& l) {
  std::vector<std::uint32_t> units(w.size(), 0);
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    std::set<std::int32_t> own;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s) {
      if (l.slots[s] < 0) continue;
      EXPECT_TRUE(own.insert(l.slots[s]).second) << "worker " << g;
      units[static_cast<std::size_t>(l.slots[s])] += l.units[s];
    }
  }
  for (const std::uint32_t u : units) EXPECT_EQ(u, k_shares_unit);
}

TEST(group_wrap, applies_only_where_slots_are_too_few_and_alike) {
  const auto w = random_loads(load_kind::lognormal, 24, 1);
  EXPECT_FALSE(group_wrap(w, *slot_layout::even(8, 31)).has_value());
  EXPECT_TRUE(group_wrap(w, *slot_layout::even(8, 30)).has_value());
  const std::vector<std::uint32_t> apart{2, 4, 6, 4, 4, 4};
  EXPECT_FALSE(group_wrap(w, *slot_layout::make(apart)).has_value());
}

TEST(group_wrap, finds_the_small_optimum) {
  // Two experts lack a worker by little each: they share a third one. 3 * 10 = 9 + 9 + 9 + 3, and
  // 1 + 9 go to the fourth.
  const slot_layout layout = *slot_layout::even(4, 8);
  const loads w{9, 9, 9, 9, 3, 1};
  const auto l = group_wrap(w, *slot_layout::even(4, 8));
  ASSERT_TRUE(l.has_value());
  expect_whole(w, layout, *l);
  EXPECT_NEAR(most(planned_loads(w, layout, l->slots, l->units)), 10, 1e-3);
}

TEST(group_wrap, mostly_finds_the_best_of_all_placements) {
  int best = 0;
  int greedy_best = 0;
  for (const auto& [experts, slots, workers] :
       {std::tuple{6U, 6U, 3U}, {5U, 6U, 3U}, {6U, 7U, 3U}, {6U, 8U, 4U}, {7U, 8U, 4U}}) {
    const slot_layout layout = *slot_layout::even(workers, slots);
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const auto w = random_loads(k_load_kinds[seed % 2], experts, seed);
      const double least = every_placement(w, layout).least();
      const auto l = group_wrap(w, layout);
      const double limit = most(planned_loads(w, layout, l->slots, l->units));
      EXPECT_GE(limit, least * (1 - 1e-9));
      best += limit <= 1.001 * least ? 1 : 0;
      const double greedy = most(even_loads(w, layout, reference_global(w, layout)));
      greedy_best += greedy <= 1.001 * least ? 1 : 0;
    }
  }
  EXPECT_GE(best, 145) << "of 150; the reference: " << greedy_best;
}

TEST(group_wrap, makes_whole_layers_of_every_load_and_shape) {
  for (const auto& [experts, slots, workers] : {std::tuple{24U, 24U, 8U},
                                                {24U, 28U, 12U},
                                                {24U, 30U, 10U},
                                                {24U, 30U, 24U},
                                                {24U, 24U, 24U},
                                                {24U, 40U, 32U},
                                                {7U, 9U, 4U},
                                                {2U, 2U, 2U}}) {
    const slot_layout layout = *slot_layout::even(workers, slots);
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      const auto w = random_loads(k_load_kinds[seed % 5], experts, seed);
      for (const spare_fill fill : {spare_fill::load, spare_fill::survival}) {
        const auto l = group_wrap(w, layout, fill);
        ASSERT_TRUE(l.has_value());
        expect_whole(w, layout, *l);
      }
    }
  }
}

TEST(group_wrap, is_never_behind_the_reference_in_a_cold_plan) {
  cold_planner planner;
  int grouped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto w = random_loads(k_load_kinds[seed % 5], 64, seed);
    const auto workers = static_cast<std::uint32_t>(8 + seed % 29);
    const auto slots = static_cast<std::uint32_t>(64 + seed % (workers - 2));
    const slot_layout layout = *slot_layout::even(workers, slots);
    const auto ours = planner.plan(w, layout);
    ASSERT_TRUE(ours.has_value());
    grouped += ours->method == plan_method::group_wrap ? 1 : 0;
    const double reference = most(even_loads(w, layout, reference_global(w, layout)));
    const double limit = most(planned_loads(w, layout, ours->slots, ours->units));
    EXPECT_LE(limit, reference * (1 + 1.0 * workers / k_shares_unit)) << "seed " << seed;
    EXPECT_GE(limit, starved_bound(w, layout) * (1 - 1e-6)) << "seed " << seed;
    const auto again = planner.plan(w, layout);
    EXPECT_EQ(again->slots, ours->slots);
    EXPECT_EQ(again->units, ours->units);
  }
  EXPECT_GE(grouped, 40);
}

TEST(worker_groups, exchanges_lower_the_limit_and_keep_every_group_wrappable) {
  const auto w = random_loads(load_kind::lognormal, 256, 5);
  int lowered = 0;
  for (const auto& [slots, workers] :
       {std::pair{288U, 144U}, {288U, 72U}, {256U, 32U}, {300U, 70U}}) {
    const slot_layout layout = *slot_layout::even(workers, slots);
    worker_groups groups(w, layout);
    for (const double mate : {0.0, 100.0}) {
      groups.start(mate);
      const double before = groups.limit();
      groups.improve(0);
      EXPECT_LE(groups.limit(), before);
      lowered += groups.limit() < 0.999 * before ? 1 : 0;
      std::set<std::uint32_t> experts, seen;
      EXPECT_EQ(groups.groups().size(), 256 + workers - slots);
      for (const worker_group& g : groups.groups()) {
        std::size_t room = 1;
        double load = 0;
        for (const std::uint32_t x : g.workers) {
          room += layout.count(x) - 1;
          EXPECT_TRUE(seen.insert(x).second);
        }
        for (const std::uint32_t e : g.experts) {
          load += static_cast<double>(w[e]);
          EXPECT_TRUE(experts.insert(e).second);
        }
        EXPECT_EQ(g.experts.size(), room);
        EXPECT_NEAR(g.load, load, 1e-3);
      }
      EXPECT_EQ(experts.size(), 256U);
      EXPECT_EQ(seen.size(), workers);
    }
  }
  EXPECT_GE(lowered, 6) << "of 8 starts";
}

}  // namespace
}  // namespace moetier::eplb
