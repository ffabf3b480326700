#include "eplb/balance/balance.hpp"

#include <gtest/gtest.h>

namespace moetier::eplb {
namespace {

using numbers = std::vector<std::uint64_t>;

double ratio(const numbers& by_slot, const std::vector<std::uint32_t>& first) {
  const numbers x = worker_loads(by_slot, first);
  return balancedness(std::span<const std::uint64_t>(x));
}

// Over slots it would be 0.444, over summed layers 1.
TEST(balance, divides_by_workers_within_one_layer) {
  balance_summary s(2);
  s.add(0, ratio({9, 3, 3, 1}, {0, 2, 4}));
  s.add(1, ratio({3, 1, 9, 3}, {0, 2, 4}));
  EXPECT_NEAR(s.mean(), 8.0 / 12, 1e-12);
  EXPECT_NEAR(s.worst(), 8.0 / 12, 1e-12);
}

TEST(balance, counts_workers_and_not_slots_where_slots_are_uneven) {
  EXPECT_NEAR(ratio({4, 4, 4, 4}, {0, 3, 4}), 8.0 / 12, 1e-12);
}

TEST(balance, takes_the_ratio_of_each_step_before_the_mean) {
  balance_summary s(3);
  s.add(0, 1.0);
  s.add(0, 0.5);
  EXPECT_EQ(s.of(0), 0.75);
  EXPECT_EQ(s.mean(), 0.75);  // layer 1 had no load
  s.add(1, 0.25);
  EXPECT_EQ(s.mean(), 0.5);
  EXPECT_EQ(s.worst(), 0.25);
  s.add(2, 0.5);
  EXPECT_EQ(s.worst(), 0.25);
}

TEST(balance, is_one_without_load) {
  EXPECT_EQ(balancedness(std::vector<double>{0, 0}), 1);
  EXPECT_EQ(imbalance(std::vector<double>{0, 0}), 0);
  EXPECT_EQ(percent_of_optimal(0, std::vector<double>{0, 0}), 100);
}

TEST(balance, names_excess_waiting_and_percent_of_the_bound) {
  const std::vector<double> x{6, 2};
  EXPECT_NEAR(imbalance(x), 0.5, 1e-12);
  EXPECT_NEAR(wait_fraction(x), 1.0 / 3, 1e-12);
  EXPECT_NEAR(percent_of_optimal(4.5, x), 75, 1e-12);
}

TEST(balance, measures_replica_skew_of_busy_experts_alone) {
  EXPECT_NEAR(replica_skew(numbers{900, 100}, std::vector<std::uint32_t>{32768, 32768}), 1.8,
              1e-12);
  EXPECT_EQ(replica_skew(numbers{899, 100}, std::vector<std::uint32_t>{32768, 32768}), 0);
}

}  // namespace
}  // namespace moetier::eplb
