#include "kernels/cuda/straight_launch.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/expert_gemm_args.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr device_size k_h200{.multiprocessors = 132, .shared_bytes_max = 232448};
constexpr gemm_shape k_dsv3{
    .hidden_size = 7168, .intermediate_size = 2048, .format = gemm_format::fp8};
constexpr gemm_shape k_gpt_oss{
    .hidden_size = 2880, .intermediate_size = 2880, .format = gemm_format::bf16, .bias = true};

TEST(straight_launch, fills_the_device_with_one_block_a_multiprocessor) {
  const auto plan = plan_straight(k_dsv3, 64, k_h200);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->format, gemm_format::fp8);
  EXPECT_EQ(plan->blocks, 132u);
  EXPECT_EQ(plan->threads, 384u);
  EXPECT_EQ(plan->stages, 4u);
}

TEST(straight_launch, starts_no_cluster_that_can_have_no_unit) {
  // FC1 of 128 x 128 has 2 strips, one unit; FC2 one strip, one unit: two clusters a tile.
  const gemm_shape shape{.hidden_size = 128, .intermediate_size = 128, .format = gemm_format::fp8};
  EXPECT_EQ(plan_straight(shape, 3, k_h200)->blocks, 12u);
  EXPECT_EQ(plan_straight(shape, 32, k_h200)->blocks, 128u);
  EXPECT_EQ(plan_straight(shape, 33, k_h200)->blocks, 132u);
  EXPECT_EQ(plan_straight(shape, 34, k_h200)->blocks, 132u);
  EXPECT_EQ(plan_straight(shape, 0, k_h200)->blocks, 2u);
}

TEST(straight_launch, starts_whole_clusters_on_any_device) {
  EXPECT_EQ(plan_straight(k_dsv3, 64, {.multiprocessors = 131})->blocks, 130u);
  EXPECT_EQ(plan_straight(k_dsv3, 64, {.multiprocessors = 2})->blocks, 2u);
  EXPECT_FALSE(plan_straight(k_dsv3, 64, {.multiprocessors = 1}));
}

TEST(straight_launch, counts_an_odd_strip_as_a_unit_and_an_odd_unit_as_a_pair) {
  // 45 strips of FC1, 23 of FC2: 23 and 12 units a tile, 12 and 6 pairs.
  EXPECT_EQ(plan_straight(k_gpt_oss, 1, k_h200)->blocks, 36u);
}

TEST(straight_launch, keeps_a_counter_for_every_tile_behind_the_launch_wide_ones) {
  EXPECT_EQ(plan_straight(k_dsv3, 0, k_h200)->counters, gemm_counters::first_tile);
  EXPECT_EQ(plan_straight(k_dsv3, 5000, k_h200)->counters, gemm_counters::first_tile + 5000);
}

TEST(straight_launch, fits_a_block_into_the_shared_memory_of_hopper) {
  // Four stages of 32 KB weights and 16 KB rows (fp8: with scales, in whole KB).
  EXPECT_EQ(straight_stage_bytes(gemm_format::bf16), 49152u);
  EXPECT_EQ(straight_stage_bytes(gemm_format::fp8), 50176u);
  for (const gemm_shape& shape : {k_dsv3, k_gpt_oss}) {
    const auto plan = plan_straight(shape, 64, k_h200);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->shared_bytes, straight_shared_bytes(shape.format));
    EXPECT_LE(plan->shared_bytes, 232448u);
    EXPECT_GT(plan->shared_bytes, 4 * straight_stage_bytes(shape.format) + 16384);
  }
}

TEST(straight_launch, refuses_a_device_with_less_shared_memory) {
  const std::uint32_t needed = straight_shared_bytes(gemm_format::fp8);
  EXPECT_TRUE(plan_straight(k_dsv3, 64, {.multiprocessors = 132, .shared_bytes_max = needed}));
  EXPECT_FALSE(plan_straight(k_dsv3, 64, {.multiprocessors = 132, .shared_bytes_max = needed - 1}));
}

TEST(straight_launch, refuses_sizes_that_are_no_whole_blocks_of_k) {
  const auto plans = [](gemm_format format, std::uint32_t h, std::uint32_t i) {
    return plan_straight({.hidden_size = h, .intermediate_size = i, .format = format}, 1, k_h200)
        .has_value();
  };
  EXPECT_TRUE(plans(gemm_format::bf16, 192, 64));
  EXPECT_FALSE(plans(gemm_format::bf16, 160, 64));
  EXPECT_FALSE(plans(gemm_format::bf16, 192, 96));
  EXPECT_FALSE(plans(gemm_format::bf16, 0, 64));
  EXPECT_FALSE(plans(gemm_format::bf16, 64, 0));
  EXPECT_TRUE(plans(gemm_format::fp8, 128, 384));
  EXPECT_FALSE(plans(gemm_format::fp8, 192, 128));
  EXPECT_FALSE(plans(gemm_format::fp8, 128, 192));
}

TEST(straight_launch, refuses_more_scales_than_a_unit_holds) {
  const auto plans = [](std::uint32_t h, std::uint32_t i) {
    return plan_straight({.hidden_size = h, .intermediate_size = i, .format = gemm_format::fp8}, 1,
                         k_h200)
        .has_value();
  };
  const std::uint32_t most = straight_scale_blocks_max(gemm_format::fp8) * 128;
  EXPECT_TRUE(plans(most, most));
  EXPECT_FALSE(plans(most + 128, 128));
  EXPECT_FALSE(plans(128, most + 128));
}

TEST(straight_launch, has_biases_in_bf16_only) {
  gemm_shape shape = k_dsv3;
  shape.bias = true;
  EXPECT_FALSE(plan_straight(shape, 64, k_h200));
  EXPECT_TRUE(plan_straight(k_gpt_oss, 64, k_h200));
}

TEST(straight_launch, prints_itself) {
  EXPECT_EQ(to_string(*plan_straight(k_gpt_oss, 100, k_h200)),
            "straight bf16: 132 blocks of 384 threads, 4 stages, " +
                std::to_string(straight_shared_bytes(gemm_format::bf16)) +
                " shared bytes, 132 counters");
}

}  // namespace
}  // namespace moetier::kernels::cuda
