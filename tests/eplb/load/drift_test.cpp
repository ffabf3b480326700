#include "eplb/load/drift.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "eplb/load/decayed_load.hpp"
#include "eplb/load/plan_load.hpp"

namespace moetier::eplb {
namespace {

using loads = std::vector<std::uint64_t>;

TEST(drift, is_half_the_difference_of_normalised_loads) {
  EXPECT_DOUBLE_EQ(drift(loads{1, 1}, loads{10, 10}), 0);
  EXPECT_DOUBLE_EQ(drift(loads{1, 0}, loads{0, 3}), 1);
  EXPECT_DOUBLE_EQ(drift(loads{3, 1}, loads{1, 1}), 0.25);
  EXPECT_DOUBLE_EQ(drift(loads{0, 0}, loads{1, 1}), 0);
}

TEST(drift, of_two_samples_of_one_mixture_is_what_sampling_explains) {
  std::mt19937_64 random(1);
  const loads mixture{50, 30, 10, 5, 5};
  std::discrete_distribution<std::size_t> draw({50, 30, 10, 5, 5});
  double seen = 0;
  for (int i = 0; i < 400; ++i) {
    loads a(5, 0), b(5, 0);
    for (int n = 0; n < 200; ++n) {
      ++a[draw(random)];
      ++b[draw(random)];
    }
    seen += drift(a, b) / 400;
  }
  EXPECT_NEAR(seen, drift_of_sampling(mixture, 200, 200), 0.1 * seen);
}

TEST(drift, is_a_switch_only_above_the_threshold_and_the_noise) {
  EXPECT_TRUE(is_switch(loads{1000, 600}, loads{600, 1000}, 1600));
  EXPECT_FALSE(is_switch(loads{1000, 900}, loads{900, 1000}, 1900));
  EXPECT_FALSE(is_switch(loads{2, 1}, loads{1, 2}, 3));  // too few to tell
}

TEST(plan_load, is_the_window_and_the_faded_mean_in_equal_parts) {
  loads blended(2);
  plan_load(loads{10, 0}, loads{256 * 4, 256 * 6}, blended);
  EXPECT_EQ(blended, (loads{256 * 14, 256 * 6}));
}

TEST(decayed_load, gives_the_documented_values) {
  decayed_load l(1);
  std::vector<double> seen;
  for (const std::uint64_t count : {100U, 50U, 0U}) {
    l.step(loads{count});
    seen.push_back(l.load()[0]);
  }
  EXPECT_DOUBLE_EQ(seen[0], 100);
  EXPECT_DOUBLE_EQ(seen[1], 140);
  EXPECT_DOUBLE_EQ(seen[2], 126);
  l.placement_updated();
  EXPECT_EQ(l.load()[0], 0);
}

}  // namespace
}  // namespace moetier::eplb
