#include "workers/engine/call_cost.hpp"

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

TEST(call_cost, has_no_opinion_at_first) { EXPECT_EQ(call_cost().predict(64), 0u); }

TEST(call_cost, follows_a_fixed_part_and_a_part_per_row) {
  call_cost c;
  const auto truth = [](std::uint32_t rows) { return 8 * k_microsecond + rows * 3000; };
  for (int round = 0; round < 50; ++round) {
    for (const std::uint32_t rows : {1u, 4u, 16u, 64u, 256u, 1024u}) c.observe(rows, truth(rows));
  }
  for (const std::uint32_t rows : {1u, 2u, 7u, 100u, 700u, 1024u}) {
    EXPECT_NEAR(static_cast<double>(c.predict(rows)), static_cast<double>(truth(rows)),
                0.02 * static_cast<double>(truth(rows)))
        << rows;
  }
  EXPECT_LE(c.predict(4096), 4 * truth(1024));
  EXPECT_GE(c.predict(4096), 3 * truth(1024));
}

TEST(call_cost, refuses_nobody_by_what_the_first_calls_took) {
  call_cost c;
  c.observe(8, k_second);
  EXPECT_EQ(c.predict(8), 0u);
  for (int i = 0; i < 3; ++i) c.observe(8, 100 * k_microsecond);
  EXPECT_EQ(c.predict(8), 100 * k_microsecond);
}

TEST(call_cost, changes_when_the_machine_does_but_not_by_one_outlier) {
  call_cost c;
  for (int i = 0; i < 20; ++i) c.observe(8, 100 * k_microsecond);
  c.observe(8, k_second);  // not run for a second
  EXPECT_LT(c.predict(8), 140 * k_microsecond);
  for (int i = 0; i < 60; ++i) c.observe(8, 400 * k_microsecond);
  EXPECT_NEAR(static_cast<double>(c.predict(8)), 400e3, 4e3);
}

TEST(call_cost, trusts_a_guess_less_each_time_it_refuses_by_it) {
  call_cost c;
  for (int i = 0; i < 4; ++i) c.observe(8, 10 * k_second);
  int refusals = 0;
  while (c.predict(8) > 100 * k_millisecond && refusals < 200) {
    c.doubt(8);
    ++refusals;
  }
  EXPECT_LT(refusals, 100);
}

}  // namespace
}  // namespace moetier::workers
