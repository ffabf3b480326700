// Scalar against AVX2 and fused against generic on many random rows: ids and weights in bits.
#include "tests/kernels/routing_shapes.hpp"

namespace moetier::kernels {
namespace {

TEST(routing_forms, are_equal_in_bits_on_a_hundred_thousand_rows) {
  constexpr std::uint32_t k_tokens = 300;
  std::size_t rows = 0;
  const std::vector<routing_shape> shapes = routing_shapes();
  for (unsigned seed = 100; rows < 100'000; ++seed) {
    std::mt19937 random(seed);
    for (const routing_shape& shape : shapes) {
      const routing_params& p = shape.params;
      const layer_routing layer = layer_of(shape, random);
      const std::vector<float> logits = rows_of(p.columns(), k_tokens, random);
      route_every_form(p, logits, layer, {}, true);
      rows += k_tokens;
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
  }
}

TEST(routing_forms, flag_bad_rows_and_leave_the_others_as_they_are) {
  std::mt19937 random(64);
  for (const routing_shape& shape : routing_shapes()) {
    const routing_params& p = shape.params;
    const layer_routing layer = layer_of(shape, random);
    std::vector<float> logits(std::size_t{p.columns()} * 5);
    std::normal_distribution<float> normal;
    for (float& x : logits) x = normal(random);
    const routed good = route_every_form(p, logits, layer, {}, true);
    EXPECT_EQ(good.flags, std::vector<std::uint8_t>(5, 0));
    logits[p.columns()] = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(logits.begin() + 3 * p.columns(), p.columns(),
                -std::numeric_limits<float>::infinity());
    const routed bad = route_every_form(p, logits, layer, {}, true);
    EXPECT_EQ(bad.flags, (std::vector<std::uint8_t>{0, 1, 0, 1, 0}));
    for (std::size_t i = 0; i < bad.ids.size(); ++i) {
      const bool flagged = bad.flags[i / p.top_k] != 0;
      ASSERT_EQ(bad.ids[i], flagged ? -1 : good.ids[i]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(bad.weights[i]),
                flagged ? 0U : std::bit_cast<std::uint32_t>(good.weights[i]));
    }
  }
}

TEST(routing_forms, flag_rows_whose_token_id_is_foreign) {
  const routing_params p{.rule = {.method = routing_method::deepseek_v4}, .experts = 4, .top_k = 2};
  const layer_routing hash = tabled({3, 1, 0, 2}, 2);
  const std::vector<std::int32_t> tokens = {1, 2, 0};
  const routed r = route_every_form(p, std::vector<float>(12, 0.0F), hash, tokens, true);
  EXPECT_EQ(r.ids, (std::vector<std::int32_t>{0, 2, -1, -1, 3, 1}));
  EXPECT_EQ(r.weights, (std::vector<float>{.5F, .5F, 0, 0, .5F, .5F}));
  EXPECT_EQ(r.flags, (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(routing_forms, route_flagging_is_route_with_flags) {
  const routing_params p{.rule = {.method = routing_method::renormalize}, .experts = 4, .top_k = 2};
  std::vector<float> logits(8, 1.0F);
  logits[5] = std::numeric_limits<float>::infinity();
  std::vector<std::int32_t> ids(4, 9);
  std::vector<float> weights(4, 9);
  std::vector<std::uint8_t> flags(2, 9);
  EXPECT_TRUE(route_flagging(p, {}, {.logits = logits.data(), .pitch_bytes = 16, .tokens = 2}, ids,
                             weights, flags));
  EXPECT_EQ(ids, (std::vector<std::int32_t>{0, 1, -1, -1}));
  EXPECT_EQ(weights, (std::vector<float>{.5F, .5F, 0, 0}));
  EXPECT_EQ(flags, (std::vector<std::uint8_t>{0, 1}));
}

}  // namespace
}  // namespace moetier::kernels
