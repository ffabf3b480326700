// What the launchers answer before they ask the device: no device is needed.
#include <gtest/gtest.h>

#include "kernels/cuda/sm90_bf16_gather_rows.hpp"
#include "kernels/cuda/sm90_f32_combine.hpp"
#include "kernels/cuda/sm90_f32_route.hpp"
#include "kernels/cuda/sm90_fp8_quantise_rows.hpp"
#include "kernels/cuda/sm90_i32_row_tiles.hpp"

namespace moetier::kernels::cuda {
namespace {

TEST(launchers, refuse_what_the_twins_refuse) {
  EXPECT_EQ(make_row_tiles({}, nullptr).error, launch_status::k_refused);
  EXPECT_EQ(quantise_rows({.rows_cap = 1}, {}, nullptr).error, launch_status::k_refused);
  EXPECT_EQ(gather_rows({.rows_cap = 1}, {}, nullptr).error, launch_status::k_refused);
  EXPECT_EQ(combine_rows({.rows_cap = 1}, {}, nullptr).error, launch_status::k_refused);
  EXPECT_EQ(route_rows({.tokens_cap = 1}, {}, nullptr).error, launch_status::k_refused);
}

TEST(launchers, launch_nothing_for_no_rows) {
  EXPECT_TRUE(quantise_rows({}, {}, nullptr).ok());
  EXPECT_TRUE(gather_rows({}, {}, nullptr).ok());
  EXPECT_TRUE(combine_rows({}, {}, nullptr).ok());
  EXPECT_TRUE(route_rows(route_args{}, {}, nullptr).ok());
}

}  // namespace
}  // namespace moetier::kernels::cuda
