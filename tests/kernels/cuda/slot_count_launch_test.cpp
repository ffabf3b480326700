#include "kernels/cuda/slot_count_launch.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/sm90_i32_slot_count.hpp"

namespace moetier::kernels::cuda {
namespace {

TEST(slot_count_launch, starts_one_block_when_there_is_little_to_count) {
  EXPECT_EQ(plan_slot_count(0, 8, 132),
            (slot_count_launch{.blocks = 1, .threads = 256, .shared_bytes = 32}));
  EXPECT_EQ(plan_slot_count(4096, 8, 132).blocks, 1u);
  EXPECT_EQ(plan_slot_count(4097, 8, 132).blocks, 2u);
}

TEST(slot_count_launch, never_starts_more_than_two_blocks_per_multiprocessor) {
  EXPECT_EQ(plan_slot_count(UINT32_MAX, 8, 132).blocks, 264u);
  EXPECT_EQ(plan_slot_count(UINT32_MAX, 8, 1).blocks, 2u);
}

TEST(slot_count_launch, asks_for_one_counter_per_slot) {
  EXPECT_EQ(plan_slot_count(1, 1, 132).shared_bytes, 4u);
  EXPECT_EQ(plan_slot_count(1, 1024, 132).shared_bytes, 4096u);
}

TEST(slot_count_launch, refuses_what_the_twin_refuses_before_it_asks_the_device) {
  EXPECT_EQ(count_slots({}), slot_count_status::bad_problem);
}

}  // namespace
}  // namespace moetier::kernels::cuda
