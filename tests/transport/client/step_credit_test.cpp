#include "transport/client/source/step_credit.hpp"

#include <gtest/gtest.h>

namespace moetier::client {
namespace {

constexpr time_ns k_start = 77 * k_second;

TEST(step_credit, holds_nobody_up_without_a_rate) {
  step_credit c;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(c.wait_for_step(0, k_start), 0u);
    c.charge(4096);
  }
}

TEST(step_credit, keeps_the_rate_over_a_second) {
  step_credit c;
  std::uint64_t tokens = 0;
  for (time_ns now = k_start; now < k_start + 10 * k_second; now += k_millisecond) {
    if (c.wait_for_step(1000, now) > 0) continue;
    c.charge(32);
    tokens += 32;
  }
  EXPECT_GE(tokens, 10'000u);
  EXPECT_LE(tokens, 10'000u + 100 + 32);  // what was saved up at first, and one step over
}

TEST(step_credit, says_how_long_the_debt_of_a_large_step_lasts) {
  step_credit c;
  ASSERT_EQ(c.wait_for_step(1000, k_start), 0u);
  c.charge(600);  // 100 were saved up
  const duration_ns wait = c.wait_for_step(1000, k_start);
  EXPECT_NEAR(static_cast<double>(wait), 0.5e9, 1e3);
  EXPECT_GT(c.wait_for_step(1000, k_start + wait - k_millisecond), 0u);
  EXPECT_EQ(c.wait_for_step(1000, k_start + wait + k_microsecond), 0u);
}

TEST(step_credit, follows_a_rate_that_changes) {
  step_credit c;
  ASSERT_EQ(c.wait_for_step(1000, k_start), 0u);
  c.charge(1100);
  EXPECT_NEAR(static_cast<double>(c.wait_for_step(1000, k_start)), 1e9, 1e3);
  EXPECT_NEAR(static_cast<double>(c.wait_for_step(10'000, k_start)), 0.1e9, 1e3);
  EXPECT_EQ(c.wait_for_step(0, k_start), 0u);
}

TEST(step_credit, begins_no_step_right_after_a_worker_had_no_time) {
  step_credit c;
  c.back_off(5 * k_millisecond, k_start);
  EXPECT_EQ(c.wait_for_step(0, k_start + k_millisecond), 4 * k_millisecond);
  EXPECT_EQ(c.wait_for_step(0, k_start + 5 * k_millisecond), 0u);
}

}  // namespace
}  // namespace moetier::client
