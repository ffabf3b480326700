#include "actors/cli/latency.hpp"

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

TEST(latency, percentiles_are_times_that_were_measured) {
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 100; i >= 1; --i) times.push_back(i * 1000);
  const latency_figures f = figures_of(times);
  EXPECT_DOUBLE_EQ(f.min, 1);
  EXPECT_DOUBLE_EQ(f.p50, 50);
  EXPECT_DOUBLE_EQ(f.p90, 90);
  EXPECT_DOUBLE_EQ(f.p99, 99);
  EXPECT_DOUBLE_EQ(f.p999, 100);
  EXPECT_DOUBLE_EQ(f.max, 100);
  EXPECT_DOUBLE_EQ(f.mean, 50.5);
}

TEST(latency, of_one_time_is_that_time) {
  const latency_figures f = figures_of({2000});
  EXPECT_DOUBLE_EQ(f.p50, 2);
  EXPECT_DOUBLE_EQ(f.p999, 2);
}

}  // namespace
}  // namespace moetier::cli
