#include "actors/log/line_budget.hpp"

#include <gtest/gtest.h>

namespace moetier {
namespace {

TEST(line_budget, lets_twenty_lines_of_an_event_through_each_second) {
  line_budget b;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(b.take("e", "", 5), 0u);
  EXPECT_FALSE(b.take("e", "", 5));
  EXPECT_FALSE(b.take("e", "", 5 + k_second - 1));
  EXPECT_TRUE(b.take("other", "", 5));
  EXPECT_EQ(b.take("e", "", 5 + k_second), 2u);  // and says what was left out
}

TEST(line_budget, lets_one_line_of_a_peers_trouble_through_each_second) {
  line_budget b;
  EXPECT_EQ(b.take("e", "worker=a;", 0), 0u);
  EXPECT_FALSE(b.take("e", "worker=a;", k_second - 1));
  EXPECT_EQ(b.take("e", "worker=b;", k_second - 1), 1u);
  EXPECT_EQ(b.take("e", "worker=a;", k_second), 0u);
  EXPECT_EQ(b.take("f", "worker=a;", k_second), 0u);
}

TEST(line_budget, stays_bounded_and_still_limits_an_event_of_many_peers) {
  line_budget b;
  std::uint64_t written = 0;
  for (int i = 0; i < 100'000; ++i) {
    written += b.take("e", std::to_string(i), i * 10'000).has_value() ? 1 : 0;
  }
  EXPECT_LE(written, 40u);  // of one second
}

}  // namespace
}  // namespace moetier
