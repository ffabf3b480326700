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
    const std::uint64_t entries = std::uint64_t{c.rows_cap} * c.k_in;
    for (const std::uint32_t rows : {8u, 16u, 32u, 64u}) {
      const auto ladder = plan_ladder(k_deepseek, rows, tiles_max(entries, c.slots, rows), {});
      ASSERT_TRUE(ladder);
      EXPECT_GE(ladder->counters, 1u);
      EXPECT_LE(std::size_t{ladder->counters} * 4, bytes);
    }
    const auto straight = plan_straight(k_deepseek, tiles_max(entries, c.slots, 128), {});
    ASSERT_TRUE(straight);
    EXPECT_LE(std::size_t{straight->counters} * 4, bytes);
    EXPECT_GE(w->header, bytes);
  }
}

TEST(sm90_workspace, has_no_plan_for_more_than_the_grouping_takes) {
  EXPECT_FALSE(plan_workspace(k_deepseek, {.rows_cap = 131073, .k_in = 8, .slots = 32}, {}));
  EXPECT_FALSE(plan_workspace(k_deepseek, {.rows_cap = 8, .k_in = 8, .slots = 1025}, {}));
}

TEST(sm90_variant, takes_the_straight_kernel_where_slots_have_many_rows) {
  using enum gemm_variant;
  const auto variant = [](std::uint64_t entries, std::uint32_t hint) {
    return choose_gemm(return_mode::partial, entries, 32, hint).variant;
  };
  EXPECT_EQ(variant(1024, 0), ladder);
  EXPECT_EQ(variant(4096, 0), straight);
  EXPECT_EQ(variant(4096, 2), ladder);
  EXPECT_EQ(variant(64, 56), straight);
}

TEST(sm90_variant, keeps_one_kernel_where_bits_must_not_depend_on_the_batch) {
  EXPECT_EQ(choose_gemm(return_mode::exact, 1u << 20, 1, 4096).variant, gemm_variant::ladder);
}

TEST(sm90_variant, gives_tiles_the_height_that_nearly_all_slots_fill) {
  EXPECT_EQ(ladder_rows_for(0), 8u);
  EXPECT_EQ(ladder_rows_for(1), 8u);
  EXPECT_EQ(ladder_rows_for(2), 16u);
  EXPECT_EQ(ladder_rows_for(8), 32u);
  EXPECT_EQ(ladder_rows_for(32), 64u);
  EXPECT_EQ(ladder_rows_for(1u << 20), 64u);
}

}  // namespace
}  // namespace moetier::kernels::cuda
