#include "kernels/cuda/sm90_workspace.hpp"

#include <gtest/gtest.h>

#include <array>

#include "kernels/cuda/sm90_variant.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr gemm_shape k_deepseek{7168, 2048, gemm_format::fp8, false};
constexpr gemm_shape k_gpt_oss{2880, 2880, gemm_format::bf16, true};

TEST(sm90_workspace, lays_its_parts_one_behind_the_other) {
  const auto w = plan_workspace(k_deepseek, {.rows_cap = 512, .k_in = 8, .slots = 32}, {});
  ASSERT_TRUE(w);
  const std::array offsets{std::size_t{0},
                           w->header,
                           w->tiles,
                           w->segment_tile,
                           w->tile_segment,
                           w->entry_of,
                           w->place_of,
                           w->scratch,
                           w->x,
                           w->mid,
                           w->y,
                           w->partials};
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    EXPECT_GE(offsets[i], offsets[i - 1]);
    EXPECT_EQ(offsets[i] % 256, 0u);
  }
  EXPECT_GE(w->header, w->counters_bytes);
  // Activations of 4096 entries: at most a group more for each of 32 slots and each full tile.
  EXPECT_GE(w->mid - w->x, std::size_t{512} * 56 * 1056);
  EXPECT_GE(w->partials - w->y, std::size_t{4096} * 7168 * 4);
}

TEST(sm90_workspace, grows_with_every_member_of_the_capacity) {
  const auto bytes = [](const layer_capacity& c) {
    return plan_workspace(k_gpt_oss, c, {})->bytes;
  };
  const layer_capacity base{.rows_cap = 100, .k_in = 4, .slots = 64};
  EXPECT_GE(bytes({.rows_cap = 101, .k_in = 4, .slots = 64}), bytes(base));
  EXPECT_GE(bytes({.rows_cap = 100, .k_in = 5, .slots = 64}), bytes(base));
  EXPECT_GE(bytes({.rows_cap = 100, .k_in = 4, .slots = 65}), bytes(base));
}

TEST(sm90_workspace, keeps_its_counters_where_calls_of_every_size_find_them_zero) {
  const std::size_t bytes = counters_bytes_of(k_deepseek, {});
  for (const layer_capacity& c :
       {layer_capacity{1, 1, 1}, layer_capacity{64, 8, 256}, layer_capacity{131072, 8, 1024}}) {
    const auto w = plan_workspace(k_deepseek, c, {});
    ASSERT_TRUE(w);
    EXPECT_EQ(w->counters_bytes, bytes);
    EXPECT_GE(std::size_t{w->ladder.counters} * 4, std::size_t{4});
    EXPECT_LE(std::size_t{w->ladder.counters} * 4, bytes);
    EXPECT_LE(std::size_t{w->straight.counters} * 4, bytes);
    EXPECT_GE(w->header, bytes);
  }
}

TEST(sm90_workspace, has_no_plan_for_more_than_the_grouping_takes) {
  EXPECT_FALSE(plan_workspace(k_deepseek, {.rows_cap = 131073, .k_in = 8, .slots = 32}, {}));
  EXPECT_FALSE(plan_workspace(k_deepseek, {.rows_cap = 8, .k_in = 8, .slots = 1025}, {}));
}

TEST(sm90_variant, takes_the_straight_kernel_where_slots_have_many_rows) {
  using enum gemm_variant;
  EXPECT_EQ(variant_for(return_mode::partial, 1024, 32, 0), ladder);
  EXPECT_EQ(variant_for(return_mode::partial, 4096, 32, 0), straight);
  EXPECT_EQ(variant_for(return_mode::partial, 4096, 32, 2), ladder);
  EXPECT_EQ(variant_for(return_mode::partial, 64, 32, 56), straight);
}

TEST(sm90_variant, keeps_one_kernel_where_bits_must_not_depend_on_the_batch) {
  EXPECT_EQ(variant_for(return_mode::exact, 1u << 20, 1, 4096), gemm_variant::ladder);
}

}  // namespace
}  // namespace moetier::kernels::cuda
