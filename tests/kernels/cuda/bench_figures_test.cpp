// What the device bench makes of its readings, without a device.
#include <gtest/gtest.h>

#include "kernels/cuda/bench/bench_stream.hpp"
#include "kernels/cuda/bench/clock_mark.hpp"

namespace moetier::kernels::cuda::bench {
namespace {

TEST(bench_figures, a_spread_is_of_all_repeats) {
  const time_spread t = spread_of({5, 1, 3, 2, 4});
  EXPECT_EQ(t.median, 3);
  EXPECT_EQ(t.min, 1);
  EXPECT_EQ(t.max, 5);
  EXPECT_EQ(t.n, 5U);
  EXPECT_EQ(spread_of({}).n, 0U);
}

TEST(bench_figures, the_clock_is_the_median_of_multiprocessors_that_both_marks_saw) {
  const clock_reading before[] = {{100, 1000}, {0, 0}, {500, 1000}, {100, 1000}, {900, 1000}};
  const clock_reading after[] = {{3100, 3000}, {9000, 3000}, {3500, 3000}, {0, 0}, {4500, 3000}};
  EXPECT_DOUBLE_EQ(mhz_between(before, after), 1500);
  EXPECT_EQ(mhz_between({}, {}), 0);
}

}  // namespace
}  // namespace moetier::kernels::cuda::bench
