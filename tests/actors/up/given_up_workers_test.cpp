#include "actors/up/given_up_workers.hpp"

#include <gtest/gtest.h>

namespace moetier::up {
namespace {

constexpr duration_ns k_limit = given_up_workers::k_unready_limit;

TEST(given_up_workers, with_none_an_unready_tier_goes_on) {
  given_up_workers g;
  EXPECT_EQ(std::nullopt, g.verdict(0, 2, false));
  EXPECT_EQ(std::nullopt, g.verdict(k_limit, 2, false));
}

TEST(given_up_workers, while_the_others_serve_everything_the_tier_goes_on) {
  given_up_workers g;
  g.add(7);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(std::nullopt, g.verdict(i * k_limit, 2, true));
}

TEST(given_up_workers, without_any_left_it_ends_with_the_last_ones_code) {
  given_up_workers g;
  g.add(7);
  g.add(1);
  EXPECT_EQ(1, g.verdict(0, 2, true));
}

TEST(given_up_workers, what_nobody_serves_for_the_limit_ends_it) {
  given_up_workers g;
  g.add(7);
  EXPECT_EQ(std::nullopt, g.verdict(k_second, 3, false));
  EXPECT_EQ(std::nullopt, g.verdict(k_second + k_limit - 1, 3, false));
  EXPECT_EQ(7, g.verdict(k_second + k_limit, 3, false));
}

TEST(given_up_workers, hope_in_between_starts_the_limit_anew) {
  given_up_workers g;
  g.add(7);
  EXPECT_EQ(std::nullopt, g.verdict(0, 3, false));
  EXPECT_EQ(std::nullopt, g.verdict(k_limit - 1, 3, true));
  EXPECT_EQ(std::nullopt, g.verdict(k_limit, 3, false));
  EXPECT_EQ(std::nullopt, g.verdict(2 * k_limit - 1, 3, false));
  EXPECT_EQ(7, g.verdict(2 * k_limit, 3, false));
}

}  // namespace
}  // namespace moetier::up
