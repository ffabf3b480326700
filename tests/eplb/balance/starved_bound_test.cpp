// The starved bound against the least limit of small layers, found by trying every parting.
#include "eplb/balance/starved_bound.hpp"

#include <gtest/gtest.h>

#include "eplb/balance/bound.hpp"
#include "tests/eplb/every_placement.hpp"
#include "tests/eplb/random_loads.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;

TEST(starved_bound, adds_the_lightest_mates_to_an_expert_without_replicas) {
  // Four workers, two slots each, no replica: the hottest shares with the lightest.
  const slot_layout layout = *slot_layout::even(4, 8);
  EXPECT_NEAR(starved_bound(loads{9, 8, 7, 6, 4, 3, 2, 1}, layout), 10, 1e-6);
  EXPECT_DOUBLE_EQ(lower_bound(loads{9, 8, 7, 6, 4, 3, 2, 1}, 8, 4), 10);  // the mean as well
  EXPECT_NEAR(starved_bound(loads{12, 3, 3, 3, 2, 2, 2, 2}, layout), 14, 1e-6);
  EXPECT_DOUBLE_EQ(lower_bound(loads{12, 3, 3, 3, 2, 2, 2, 2}, 8, 4), 12);
}

TEST(starved_bound, is_the_lower_bound_where_slots_suffice) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto w = random_loads(k_load_kinds[seed % 5], 24, seed);
    const slot_layout layout = *slot_layout::even(4, 27);
    EXPECT_EQ(starved_bound(w, layout), lower_bound(w, 27, 4)) << "seed " << seed;
  }
}

TEST(starved_bound, is_never_above_the_best_placement_and_reaches_it_more_often) {
  int reached = 0;
  int reached_without = 0;
  for (const auto& [experts, slots, workers] : {std::tuple{6U, 6U, 3U},
                                                {6U, 6U, 2U},
                                                {5U, 6U, 3U},
                                                {6U, 7U, 3U},
                                                {6U, 8U, 4U},
                                                {5U, 6U, 4U},
                                                {7U, 8U, 4U},
                                                {4U, 5U, 5U}}) {
    const slot_layout layout = *slot_layout::even(workers, slots);
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const auto w = random_loads(k_load_kinds[seed % 4], experts, seed);
      const double best = every_placement(w, layout).least();
      const double bound = starved_bound(w, layout);
      ASSERT_LE(bound, best * (1 + 1e-6) + 1e-6)
          << "seed " << seed << " " << experts << "/" << slots << "/" << workers;
      ASSERT_GE(bound, lower_bound(w, slots, workers));
      reached += bound >= 0.999 * best ? 1 : 0;
      reached_without += lower_bound(w, slots, workers) >= 0.999 * best ? 1 : 0;
    }
  }
  EXPECT_GE(reached, reached_without + 25) << "of 240; without: " << reached_without;
}

}  // namespace
}  // namespace moetier::eplb
