#include "kernels/cuda/route_launch.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace moetier::kernels::cuda {
namespace {

// What a legal call of 256 experts points to.
struct world {
  std::vector<float> floats = std::vector<float>(1024);
  std::uint32_t word = 0;
  std::int32_t id = 0;
  std::uint16_t expert = 0;

  route_args args(const routing_rule& rule) {
    return {.rule = rule,
            .columns = 256,
            .top_k = 8,
            .logits = reinterpret_cast<const std::byte*>(floats.data()),
            .pitch_bytes = 1024,
            .tokens_live = &word,
            .tokens_cap = 1,
            .ids = &id,
            .weights = floats.data(),
            .status = &word};
  }
};

TEST(route_launch, takes_every_method_with_logits_and_no_other) {
  world w;
  for (std::uint8_t m = 0; m <= k_routing_methods; ++m) {
    const auto method = static_cast<routing_method>(m);
    const bool none = method == routing_method::unspecified ||
                      method == routing_method::static_table ||
                      method == routing_method::round_robin || m == k_routing_methods;
    EXPECT_EQ(can_route(w.args({.method = method})), !none) << routing_method_name(method);
  }
}

TEST(route_launch, takes_1024_columns_and_32_experts_a_row_at_most) {
  world w;
  const auto takes = [&](auto&& change) {
    route_args args = w.args({.method = routing_method::deepseek_v3});
    change(args);
    return can_route(args);
  };
  EXPECT_TRUE(takes([](route_args& a) { a.columns = 1024; }));
  EXPECT_FALSE(takes([](route_args& a) { a.columns = 1025; }));
  EXPECT_TRUE(takes([](route_args& a) { a.top_k = 32; }));
  EXPECT_FALSE(takes([](route_args& a) { a.top_k = 33; }));
  EXPECT_FALSE(takes([](route_args& a) { a.columns = 7; }));
  EXPECT_FALSE(takes([](route_args& a) { a.rule.groups = 3; }));
  EXPECT_FALSE(takes([](route_args& a) { a.type = dtype::u8; }));
  EXPECT_FALSE(takes([](route_args& a) { a.logits = nullptr; }));
  EXPECT_FALSE(takes([](route_args& a) { a.status = nullptr; }));
  EXPECT_FALSE(takes([&](route_args& a) { a.table = &w.expert; }));
  EXPECT_TRUE(takes([&](route_args& a) {
    a.table = &w.expert;
    a.table_rows = 1;
    a.token_ids = &w.id;
  }));
}

TEST(route_launch, gives_a_warp_a_row_and_a_lane_a_power_of_two_of_columns) {
  world w;
  route_args args = w.args({.method = routing_method::default_softmax});
  EXPECT_EQ(plan_route(args, {}), (route_plan{.grid = 1,
                                              .lane_columns = 8,
                                              .group_lanes = 32,
                                              .group_factor = 4096,
                                              .score = score_kind::softmax,
                                              .weight = weight_kind::score,
                                              .share = true}));
  args.tokens_cap = 4097;
  EXPECT_EQ(plan_route(args, {}).grid, 2049u);
  args.tokens_cap = 100000;
  EXPECT_EQ(plan_route(args, {.multiprocessors = 10}).grid, 160u);
  args.columns = 8;
  EXPECT_EQ(plan_route(args, {}).lane_columns, 4u);
  args.columns = 129;
  EXPECT_EQ(plan_route(args, {}).lane_columns, 8u);
  args.columns = 257;
  EXPECT_EQ(plan_route(args, {}).lane_columns, 16u);
  args.columns = 1024;
  EXPECT_EQ(plan_route(args, {}).lane_columns, 32u);
}

TEST(route_launch, divides_columns_by_the_width_of_a_group_exactly) {
  world w;
  for (std::uint32_t width = 1; width <= 1024; ++width) {
    route_args args = w.args({.method = routing_method::deepseek_v3});
    args.rule.groups = 1024 / width;
    args.columns = args.rule.groups * width;
    const std::uint32_t factor = plan_route(args, {}).group_factor;
    for (std::uint32_t e = 0; e < args.columns; ++e)
      ASSERT_EQ(e * factor >> k_route_factor_bits, e / width) << e << " " << width;
  }
}

TEST(route_launch, looks_at_groups_only_where_some_are_dropped) {
  world w;
  route_args args = w.args({.method = routing_method::deepseek_v3, .groups = 8, .groups_kept = 4});
  EXPECT_EQ(plan_route(args, {}).groups, group_kind::pairs);
  EXPECT_TRUE(plan_route(args, {}).wide);
  EXPECT_EQ(plan_route(args, {}).group_lanes, 4u);
  args.rule.groups_kept = 8;
  EXPECT_EQ(plan_route(args, {}).groups, group_kind::none);
  EXPECT_FALSE(plan_route(args, {}).wide);
  args.bias = w.floats.data();
  EXPECT_TRUE(plan_route(args, {}).wide);
  args = w.args({.method = routing_method::deepseek_v2, .groups = 64, .groups_kept = 4});
  EXPECT_EQ(plan_route(args, {}).groups, group_kind::largest);
  EXPECT_FALSE(plan_route(args, {}).wide);
  EXPECT_EQ(plan_route(args, {}).group_lanes, 1u);
}

TEST(route_launch, keeps_raw_scores_only_where_the_method_may) {
  world w;
  routing_rule rule{.method = routing_method::deepseek_v3, .renormalise = false};
  EXPECT_FALSE(plan_route(w.args(rule), {}).share);
  rule.method = routing_method::minimax2;
  EXPECT_TRUE(plan_route(w.args(rule), {}).share);
}

}  // namespace
}  // namespace moetier::kernels::cuda
