// Loads of a window, and how even they were, by the definitions of eplb/balance.
#include "coordinator/core/tier_balance.hpp"

#include <gtest/gtest.h>

namespace moetier::coordinator {
namespace {

constexpr generation_number k_generation{1};

// Two workers of two slots; in the first layer expert 0 has a replica on each.
transport::routing_snapshot two_workers() {
  transport::routing_snapshot s;
  s.generation = k_generation;
  s.placement = *eplb::placement::make(3, {{worker_id(0), "a", 0, 2}, {worker_id(1), "b", 2, 2}},
                                       {{layer_id(1), {0, 1, 0, 2}}, {layer_id(4), {0, 1, 2, -1}}});
  s.shares = eplb::shares::even(s.placement, {true, true}, {});
  s.workers = {{worker_id(0), {}, true, {}}, {worker_id(1), {}, true, {}}};
  return s;
}

window_loads served(std::vector<std::vector<std::uint64_t>> counts) {
  return {.generation = k_generation, .length = k_second, .served = std::move(counts)};
}

TEST(tier_balance, is_the_mean_over_the_largest_layer_by_layer) {
  //                                      layer 1   layer 4
  const auto b = balance_of(two_workers(), served({{6, 3, 9, 3}, {2, 1, 4, 0}}));
  ASSERT_EQ(b.layers.size(), 2u);
  EXPECT_EQ(b.layers[0].layer, layer_id(1));
  EXPECT_DOUBLE_EQ(b.layers[0].realised, 6.0 / 9.0);
  // Split as the shares say: 4 + 3 and 4 + 1.
  EXPECT_DOUBLE_EQ(b.layers[0].planned, 6.0 / 7.0);
  EXPECT_DOUBLE_EQ(b.layers[0].optimal, 6.0 / 9.0);  // both could have had 6
  EXPECT_DOUBLE_EQ(b.layers[1].realised, 8.0 / 12.0);
  const auto over = b.over(&layer_balance::realised);
  EXPECT_DOUBLE_EQ(over.mean, 8.0 / 12.0);
  EXPECT_DOUBLE_EQ(over.worst, 8.0 / 12.0);
}

TEST(tier_balance, leaves_layers_without_load_out_of_means) {
  const auto b = balance_of(two_workers(), served({{3, 0, 0, 0}, {1, 0, 0, 0}}));
  EXPECT_FALSE(b.layers[1].loaded);
  EXPECT_DOUBLE_EQ(b.layers[1].realised, 1);
  EXPECT_DOUBLE_EQ(b.over(&layer_balance::realised).mean, 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(balance_of(two_workers(), served({{0, 0, 0, 0}, {0, 0, 0, 0}}))
                       .over(&layer_balance::realised)
                       .worst,
                   1);
}

TEST(tier_balance, judges_live_workers_alone) {
  auto s = two_workers();
  s.workers[1].live = false;
  s.shares = eplb::shares::even(s.placement, {true, false}, {});
  const auto b = balance_of(s, served({{6, 3, 9, 3}, {2, 1, 4, 0}}));
  EXPECT_DOUBLE_EQ(b.layers[0].realised, 1);
}

TEST(tier_balance, says_nothing_of_another_generation) {
  auto of_the_old = served({{6, 3, 9, 3}, {2, 1, 4, 0}});
  of_the_old.generation = generation_number(7);
  EXPECT_TRUE(balance_of(two_workers(), of_the_old).layers.empty());
}

TEST(load_window, holds_what_was_served_since_the_last_one_ended) {
  load_window w;
  EXPECT_TRUE(w.due(load_window::k_length));
  w.turn(5 * k_second, k_generation, {{10, 0}});
  EXPECT_EQ(w.last(), nullptr) << "nobody knows how long that took";
  EXPECT_FALSE(w.due(10 * k_second - 1));
  w.turn(10 * k_second, k_generation, {{14, 1}});
  ASSERT_NE(w.last(), nullptr);
  EXPECT_EQ(w.last()->served, (std::vector<std::vector<std::uint64_t>>{{4, 1}}));
  EXPECT_EQ(w.last()->length, 5 * k_second);
  // A process in the worker's place began anew.
  w.turn(15 * k_second, k_generation, {{3, 2}});
  EXPECT_EQ(w.last()->served, (std::vector<std::vector<std::uint64_t>>{{3, 1}}));
  w.turn(20 * k_second, generation_number(2), {{5, 2}});
  EXPECT_EQ(w.last()->served, (std::vector<std::vector<std::uint64_t>>{{5, 2}}));
}

}  // namespace
}  // namespace moetier::coordinator
