#include "kernels/reference/combine_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cuda/combine_case.hpp"

namespace moetier::kernels::cuda {
namespace {

float f32_at(combine_case& c, bool y, std::size_t row, std::size_t column) {
  float value = 0;
  std::memcpy(&value,
              (y ? c.y.data() + row * c.y_pitch : c.out.data() + row * c.out_pitch) + column * 4,
              4);
  return value;
}

TEST(combine_rows, sums_in_ascending_slot_then_position) {
  combine_case c({.rows = 1, .k_in = 4, .hidden_size = 8});
  c.slot_ids = {3, 0, -1, 0};
  ASSERT_TRUE(reference::combine_rows(c.args()).ok());
  for (std::size_t k = 0; k < 8; ++k) {
    float sum = 0;
    for (const std::size_t e : {1u, 3u, 0u})
      sum = std::fma(c.weights[e], f32_at(c, true, e, k), sum);
    EXPECT_EQ(f32_at(c, false, 0, k), sum);
  }
}

TEST(combine_rows, rounds_once_and_reads_what_was_rounded) {
  combine_case c(
      {.rows = 2, .k_in = 2, .hidden_size = 16, .y_as = out_type::bf16, .out_as = out_type::bf16});
  c.slot_ids = {1, 0, -1, 2};
  ASSERT_TRUE(reference::combine_rows(c.args()).ok());
  const auto bf16 = [](const std::byte* p) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p, 2);
    return f32_from_bf16(bits);
  };
  const auto y = [&](std::size_t e) { return bf16(c.y.data() + e * c.y_pitch + 6); };
  const float sum = std::fma(c.weights[0], y(0), std::fma(c.weights[1], y(1), 0.0F));
  EXPECT_EQ(bf16(c.out.data() + 6), f32_from_bf16(bf16_from_f32(sum)));
  EXPECT_EQ(bf16(c.out.data() + c.out_pitch + 6),
            f32_from_bf16(bf16_from_f32(c.weights[3] * y(3))));
}

TEST(combine_rows, writes_plus_zero_where_a_row_asks_nothing_and_nothing_behind_the_live_rows) {
  combine_case c({.rows = 3, .k_in = 2, .hidden_size = 8});
  c.slot_ids = {-1, -1, 0, 1, 0, 1};
  c.rows_live = 2;
  ASSERT_TRUE(reference::combine_rows(c.args()).ok());
  const auto untouched = [](const std::byte* from, std::size_t bytes) {
    return std::all_of(from, from + bytes, [](std::byte b) { return b == std::byte{0xcc}; });
  };
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(f32_at(c, false, 0, k), 0.0F);
    EXPECT_FALSE(std::signbit(f32_at(c, false, 0, k)));
  }
  EXPECT_TRUE(untouched(c.out.data() + 32, 16));
  EXPECT_TRUE(untouched(c.out.data() + 2 * c.out_pitch, c.out_pitch));
}

TEST(combine_rows, refuses_what_no_version_takes) {
  combine_case c({.rows = 2, .hidden_size = 8});
  const auto refused = [&](auto&& change) {
    combine_args args = c.args();
    change(args);
    return !reference::combine_rows(args).ok();
  };
  EXPECT_FALSE(refused([](combine_args&) {}));
  EXPECT_TRUE(refused([](combine_args& a) { a.k_in = 33; }));
  EXPECT_TRUE(refused([](combine_args& a) { a.k_in = 0; }));
  EXPECT_TRUE(refused([](combine_args& a) { a.hidden_size = 12; }));
  EXPECT_TRUE(refused([](combine_args& a) { a.y += 4; }));
  EXPECT_TRUE(refused([](combine_args& a) { a.out_pitch_bytes = 16; }));
  EXPECT_TRUE(refused([](combine_args& a) { a.weights = nullptr; }));
  EXPECT_TRUE(refused([](combine_args& a) { a.rows_cap = 1u << 31; }));
}

TEST(combine_launch, gives_each_warp_a_row_and_256_columns) {
  combine_args args{.rows_cap = 64, .k_in = 8, .hidden_size = 2048};
  EXPECT_EQ(plan_combine(args, {}), (combine_plan{.grid = 64, .strips = 8}));
  args.rows_cap = 16384;
  EXPECT_EQ(plan_combine(args, {}).grid, 132u * 4);
  args.hidden_size = 2056;
  EXPECT_EQ(plan_combine(args, {}).strips, 9u);
  args.rows_cap = 1;
  args.hidden_size = 8;
  EXPECT_EQ(plan_combine(args, {}), (combine_plan{.grid = 1, .strips = 1}));
}

}  // namespace
}  // namespace moetier::kernels::cuda
