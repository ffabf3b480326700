#include "actors/cli/stage_sums.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

constexpr std::string_view k_page = R"(# HELP moetier_worker_stage_seconds Time of a call by stage.
# TYPE moetier_worker_stage_seconds histogram
moetier_worker_stage_seconds_bucket{stage="wait",le="1e-06"} 7
moetier_worker_stage_seconds_count{stage="receive",worker="worker@1"} 10
moetier_worker_stage_seconds_sum{stage="receive",worker="worker@1"} 1.5e-06
moetier_worker_stage_seconds_count{stage="wait"} 10
moetier_worker_stage_seconds_sum{stage="wait"} 2e-06
moetier_worker_stage_seconds_sum{stage="group"} 3e-06
moetier_worker_stage_seconds_sum{stage="fc1"} 0.25
moetier_worker_stage_seconds_sum{stage="fc2"} 0.125
moetier_worker_stage_seconds_sum{stage="return"} 4e-06
moetier_worker_calls_total{status="ok"} 99
)";

TEST(stage_sums, are_read_from_a_page_of_metrics) {
  const stage_sums s = stage_sums_in(k_page);
  EXPECT_NEAR(s.receive, 1500, 1e-6);
  EXPECT_NEAR(s.wait, 2000, 1e-6);
  EXPECT_NEAR(s.group, 3000, 1e-6);
  EXPECT_NEAR(s.compute, 375e6, 1e-3);  // both products
  EXPECT_NEAR(s.give_back, 4000, 1e-6);
  EXPECT_EQ(s.calls, 10);
  EXPECT_NEAR(s.held(), 1500 + 2000 + 3000 + 375e6 + 4000, 1e-3);
}

TEST(stage_sums, of_a_device_are_one_stage) {
  EXPECT_NEAR(stage_sums_in("moetier_worker_stage_seconds_sum{stage=\"compute\"} 1e-3").compute,
              1e6, 1e-6);
}

TEST(stage_sums, of_a_worker_that_computed_nothing_are_zero) {
  EXPECT_EQ(stage_sums_in("").held(), 0);
  EXPECT_EQ(stage_sums_in("moetier_worker_calls_total{status=\"ok\"} 0\n").calls, 0);
}

TEST(stage_sums, subtract_and_add_stage_by_stage) {
  stage_sums twice = stage_sums_in(k_page);
  twice += stage_sums_in(k_page);
  const stage_sums once = twice - stage_sums_in(k_page);
  EXPECT_NEAR(once.receive, 1500, 1e-6);
  EXPECT_NEAR(once.held(), stage_sums_in(k_page).held(), 1e-3);
  EXPECT_EQ(once.calls, 10);
}

TEST(stage_sums, of_no_workers_are_zero_and_of_one_that_is_gone_an_error) {
  const auto none = read_stage_sums({});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->held(), 0);
  EXPECT_FALSE(read_stage_sums({"no endpoint"}));
}

}  // namespace
}  // namespace moetier::cli
