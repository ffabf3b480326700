// What the launchers answer before they ask the device: no device is needed.
#include <gtest/gtest.h>

#include "kernels/cuda/sm90_i32_row_tiles.hpp"

namespace moetier::kernels::cuda {
namespace {

TEST(launchers, refuse_what_the_twins_refuse) {
  EXPECT_EQ(make_row_tiles({}, nullptr).error, launch_status::k_refused);
}

}  // namespace
}  // namespace moetier::kernels::cuda
