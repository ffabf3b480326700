#include "eplb/load/row_mask.hpp"

#include <gtest/gtest.h>

namespace moetier::eplb {
namespace {

TEST(row_mask, counts_live_rows_of_all_repeats_and_nothing_else) {
  selection_counts c(4);
  const std::vector<std::int32_t> rows{0, 1, 1, 3};
  for (int repeat = 0; repeat < 3; ++repeat) c.add(row_kind::live, 2, rows);
  for (const row_kind k : {row_kind::padding, row_kind::stand_in, row_kind::warm_up,
                           row_kind::calibration, row_kind::canary})
    c.add(k, 2, rows);
  EXPECT_EQ(c.by_expert()[1], 6U);
  EXPECT_EQ(c.counted(), 12U);
  EXPECT_TRUE(c.complete(6, 2));
  EXPECT_FALSE(c.complete(7, 2));
}

TEST(row_mask, counts_invalid_and_refused_positions_apart) {
  selection_counts c(4);
  c.add(row_kind::live, 3, std::vector<std::int32_t>{0, 4, -1, -7, 3, 3});
  EXPECT_EQ(c.counted(), 3U);
  EXPECT_EQ(c.invalid(), 2U);
  EXPECT_EQ(c.refused(), 1U);
  EXPECT_TRUE(c.complete(2, 3));
}

}  // namespace
}  // namespace moetier::eplb
