#include "eplb/planner/model_plan.hpp"

#include <gtest/gtest.h>

#include "eplb/plan_check.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

model_loads loads_of(std::uint64_t seed, std::uint32_t experts = 24, std::uint16_t layers = 5) {
  model_loads m{experts, {}, {}};
  for (std::uint16_t l = 0; l < layers; ++l) {
    m.layers.push_back(layer_id{static_cast<std::uint16_t>(l + 3)});
    m.counts.push_back(random_loads(load_kind::lognormal, experts, seed * 31 + l));
  }
  return m;
}

TEST(model_plan, is_valid_and_told_by_layer) {
  const auto plan = plan_cold(loads_of(1), *slot_layout::even(4, 28));
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(check_plan(plan->draft, {.slots_per_worker = plan->draft.slots_per_worker}));
  ASSERT_EQ(plan->gains.size(), 5U);
  for (const layer_gain& g : plan->gains) {
    EXPECT_GE(g.percent_of_optimal, 99.9);
    EXPECT_GT(g.balancedness, g.balancedness_without);
    EXPECT_EQ(g.method, layer_method::window_wrap);
  }
}

TEST(model_plan, leaves_layers_without_load_out_of_the_figures) {
  model_loads m = loads_of(2);
  m.counts[1].assign(24, 0);
  const auto plan = plan_cold(m, *slot_layout::even(4, 28));
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(plan->gains[1].loaded);
  EXPECT_EQ(plan->gains[1].balancedness, 1);
}

TEST(model_plan, of_the_same_loads_again_has_no_moves) {
  const auto first = plan_cold(loads_of(3), *slot_layout::even(4, 28));
  const auto again = plan_by_repair(loads_of(3), first->draft, {});
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->moves.empty());
  EXPECT_EQ(plan_file_text({again->draft, 0, {}}),
            plan_file_text({plan_by_repair(loads_of(3), first->draft, {})->draft, 0, {}}));
}

TEST(model_plan, spends_its_copies_where_they_win_most) {
  const auto first = plan_cold(loads_of(3), *slot_layout::even(4, 28));
  const auto all = plan_by_repair(loads_of(4), first->draft, {});
  ASSERT_GT(all->moves.size(), 3U);
  for (const std::uint64_t total : {0U, 1U, 3U}) {
    const auto some = plan_by_repair(loads_of(4), first->draft, {.copies_total = total});
    EXPECT_LE(some->moves.size(), total);
    for (std::size_t i = 0; i < some->gains.size(); ++i) {
      EXPECT_GE(some->gains[i].balancedness, some->gains[i].balancedness_before - 1e-3);
      EXPECT_LE(some->gains[i].copies, some->gains[i].copies_reference);
    }
  }
}

TEST(model_plan, refuses_a_plan_of_another_model) {
  const auto first = plan_cold(loads_of(3), *slot_layout::even(4, 28));
  EXPECT_EQ(plan_by_repair(loads_of(3, 20), first->draft, {}).error().text,
            "placement: the plan is of 24 experts; the loads are of 20");
  EXPECT_EQ(plan_by_repair(loads_of(3, 24, 4), first->draft, {}).error().text,
            "placement: the plan has 5 layers; the loads have 4");
  model_loads shifted = loads_of(3);
  shifted.layers[4] = layer_id{9};
  EXPECT_EQ(judge_plan(shifted, first->draft).error().text,
            "placement: the plan's layer 4 is number 7; the loads' is number 9");
}

}  // namespace
}  // namespace moetier::eplb
