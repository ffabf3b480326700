// The worked vectors of every routing method, and the identities between methods.
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/routing_case.hpp"

namespace moetier::kernels {
namespace {

using ids = std::vector<std::int32_t>;

constexpr float k_infinity = std::numeric_limits<float>::infinity();
const std::vector<float> k_a = {2, 1, .5F, -1, 0, 3, -2, 1};
const layer_routing k_biased = biased({0, .25F, 0, .75F, 0, -.5F, 0, 0});

void expect_near(const std::vector<float>& weights, std::initializer_list<double> truth) {
  ASSERT_EQ(weights.size(), truth.size());
  std::size_t j = 0;
  for (const double value : truth) {
    EXPECT_NEAR(weights[j], value, 1e-6 * std::max(1.0, value));
    ++j;
  }
}

routing_params with(routing_rule rule, std::uint32_t k, std::uint32_t experts = 8) {
  return {.rule = rule, .experts = experts, .top_k = k};
}

TEST(routing_conformance, default_sums_below_one) {
  const routed r = route_every_form(with({.method = routing_method::default_softmax}, 3), k_a);
  EXPECT_EQ(r.ids, (ids{5, 0, 1}));
  expect_near(r.weights, {.556955, .204892, .075376});
}

TEST(routing_conformance, renormalize_and_renormalize_naive_are_one) {
  for (const auto method : {routing_method::renormalize, routing_method::renormalize_naive}) {
    const routed r = route_every_form(with({.method = method}, 3), k_a);
    EXPECT_EQ(r.ids, (ids{5, 0, 1}));
    expect_near(r.weights, {.665241, .244728, .090031});
    EXPECT_EQ(route_every_form(with({.method = method}, 1), k_a).weights, std::vector<float>{1.0F});
  }
}

TEST(routing_conformance, renormalize_multiplies_by_the_experts_scale) {
  layer_routing scaled;
  scaled.expert_scale = {2, .25F, 1, 1, 1, .5F, 1, 1};
  const auto params = with({.method = routing_method::renormalize}, 3);
  const routed r = route_every_form(params, k_a, scaled);
  EXPECT_EQ(r.ids, (ids{5, 0, 1}));
  expect_near(r.weights, {.665241 / 2, .244728 * 2, .090031 / 4});
}

TEST(routing_conformance, llama4) {
  const routed r = route_every_form(with({.method = routing_method::llama4}, 1), k_a);
  EXPECT_EQ(r.ids, ids{5});
  expect_near(r.weights, {.952574});
}

TEST(routing_conformance, sigmoid_renorm_with_and_without_the_sum) {
  const routed r = route_every_form(with({.method = routing_method::sigmoid_renorm}, 3), k_a);
  EXPECT_EQ(r.ids, (ids{5, 0, 1}));
  expect_near(r.weights, {.371457, .343467, .285076});
  const routed raw = route_every_form(
      with({.method = routing_method::sigmoid_renorm, .renormalise = false}, 3), k_a);
  EXPECT_EQ(raw.ids, (ids{5, 0, 1}));
  expect_near(raw.weights, {.952574, .880797, .731059});
}

TEST(routing_conformance, minimax2_orders_by_biased_score_and_weighs_by_the_plain_one) {
  const routed r = route_every_form(with({.method = routing_method::minimax2}, 3), k_a, k_biased);
  EXPECT_EQ(r.ids, (ids{3, 1, 0}));
  expect_near(r.weights, {.142993, .388696, .468311});
}

TEST(routing_conformance, deepseek_v3_keeps_the_best_groups) {
  const routed r = route_every_form(
      with({.method = routing_method::deepseek_v3, .scaling = 2.5F, .groups = 4, .groups_kept = 2},
           3),
      k_a, k_biased);
  EXPECT_EQ(r.ids, (ids{3, 1, 0}));
  expect_near(r.weights, {.357483, .971740, 1.170776});
}

TEST(routing_conformance, deepseek_v3_lets_a_pair_beat_the_best_expert) {
  const std::vector<float> logits = {2, -1, .5F, .25F, 1.5F, 1.25F, 3, -3};
  routing_rule rule{
      .method = routing_method::deepseek_v3, .scaling = 2.5F, .groups = 4, .groups_kept = 1};
  for (const layer_routing& layer : {layer_routing{}, biased(std::vector<float>(8))}) {
    const routed r = route_every_form(with(rule, 2), logits, layer);
    EXPECT_EQ(r.ids, (ids{4, 5}));
    expect_near(r.weights, {1.281566, 1.218434});
    rule.groups = 1;
    EXPECT_EQ(route_every_form(with(rule, 2), logits, layer).ids, (ids{6, 0}));
    rule.groups = 4;
  }
}

TEST(routing_conformance, deepseek_v3_masks_with_minus_infinity_not_with_zero) {
  const routed r = route_every_form(
      with({.method = routing_method::deepseek_v3, .groups = 3, .groups_kept = 1}, 2, 6),
      {0, -.5F, 1, .5F, -1, -1.5F}, biased({-2, -2, -3, -3, -.25F, -3.5F}));
  EXPECT_EQ(r.ids, (ids{0, 1}));
  expect_near(r.weights, {.569774, .430226});
}

TEST(routing_conformance, deepseek_v2_keeps_groups_by_their_best_expert) {
  routing_rule rule{.method = routing_method::deepseek_v2, .groups = 4, .groups_kept = 1};
  const routed r = route_every_form(with(rule, 2), k_a);
  EXPECT_EQ(r.ids, (ids{5, 4}));
  expect_near(r.weights, {.556955, .027729});
  rule.scaling = 16;
  expect_near(route_every_form(with(rule, 2), k_a).weights, {8.911288, .443667});
}

TEST(routing_conformance, deepseek_v4_learned_and_hashed) {
  const auto params = with({.method = routing_method::deepseek_v4, .scaling = 1.5F}, 3);
  const routed learned = route_every_form(params, k_a, k_biased);
  EXPECT_EQ(learned.ids, (ids{0, 1, 3}));
  expect_near(learned.weights, {.691387, .543276, .265337});
  const layer_routing hash = tabled({0, 1, 2, 6, 2, 3}, 2);
  const std::vector<std::int32_t> tokens = {1};
  const routed r = route_every_form(params, k_a, hash, tokens);
  EXPECT_EQ(r.ids, (ids{6, 2, 3}));
  expect_near(r.weights, {.280834, .777978, .441189});
}

TEST(routing_conformance, a_hash_layer_gives_excluded_experts_weight_zero) {
  const auto params = with({.method = routing_method::deepseek_v4}, 2, 4);
  const layer_routing hash = tabled({3, 1}, 1);
  const std::vector<std::int32_t> tokens = {0};
  const routed r = route_every_form(params, {0, 5, 0, -k_infinity}, hash, tokens);
  EXPECT_EQ(r.ids, (ids{3, 1}));
  EXPECT_EQ(r.weights, (std::vector<float>{0, 1}));
  EXPECT_EQ(route_every_form(params, std::vector<float>(4, -k_infinity), hash, tokens).weights,
            (std::vector<float>{0, 0}));
}

TEST(routing_conformance, a_hash_layer_refuses_missing_and_foreign_token_ids) {
  const auto params = with({.method = routing_method::deepseek_v4}, 1, 4);
  const layer_routing hash = tabled({3, 1}, 2);
  const std::vector<float> logits(8);
  EXPECT_EQ(route_every_form(params, logits, hash).refusal,
            "layer 0 chooses experts by token id; the call has no token_ids");
  for (const std::int32_t wrong : {-1, 2, std::numeric_limits<std::int32_t>::min()}) {
    const std::vector<std::int32_t> tokens = {0, wrong};
    EXPECT_EQ(route_every_form(params, logits, hash, tokens).refusal,
              "row 1 has token id " + std::to_string(wrong) + "; allowed: 0 to 1");
  }
}

TEST(routing_conformance, sparse_mixer_looks_only_near_each_best) {
  const routed r =
      route_every_form(with({.method = routing_method::sparse_mixer, .epsilon = .01F}, 2, 4),
                       {2, 1.99F, 1.5F, 1.98F});
  EXPECT_EQ(r.ids, (ids{0, 1}));
  expect_near(r.weights, {.336672, .5025});
  const routed zero = route_every_form(
      with({.method = routing_method::sparse_mixer, .epsilon = .01F}, 2, 3), {0, 0, -1});
  EXPECT_EQ(zero.ids, (ids{0, 1}));
  expect_near(zero.weights, {.5, 1});  // 0/0 is near
}

TEST(routing_conformance, static_tables_go_round_by_position) {
  const auto params = with({.method = routing_method::static_table}, 2, 4);
  layer_routing fixed = tabled({3, 1, 0, 2}, 2);
  const std::vector<float> logits(12);
  routed r = route_every_form(params, logits, fixed);
  EXPECT_EQ(r.ids, (ids{3, 1, 0, 2, 3, 1}));
  EXPECT_EQ(r.weights, std::vector<float>(6, 1.0F));
  fixed.table_weights = {1, 2, 3, 4};
  EXPECT_EQ(route_every_form(params, logits, fixed).weights,
            (std::vector<float>{1, 2, 3, 4, 1, 2}));
  std::vector<std::int32_t> out(2);
  std::vector<float> weights(2);
  EXPECT_TRUE(route(params, fixed, {.tokens = 1}, out, weights));
  EXPECT_EQ(out, (ids{3, 1}));
}

TEST(routing_conformance, tables_give_excluded_experts_weight_zero_and_refuse_nan) {
  const layer_routing fixed = tabled({3, 1}, 1);
  for (const auto method : {routing_method::static_table, routing_method::round_robin}) {
    const bool has_table = method == routing_method::static_table;
    const auto params = with({.method = method}, 2, 4);
    const layer_routing layer = has_table ? fixed : layer_routing{};
    routed r = route_every_form(params, {0, -k_infinity, 0, 0}, layer);
    EXPECT_EQ(r.ids, has_table ? (ids{3, 1}) : (ids{0, 1}));
    EXPECT_EQ(r.weights, (std::vector<float>{1, 0}));
    r = route_every_form(params, {0, 0, 0, std::nanf("")}, layer);
    EXPECT_EQ(r.refusal, "row 0 column 3 of the router input is not finite");
  }
}

TEST(routing_conformance, round_robin_counts_positions) {
  const routed r =
      route_every_form(with({.method = routing_method::round_robin}, 3, 4), std::vector<float>(12));
  EXPECT_EQ(r.ids, (ids{0, 1, 2, 3, 0, 1, 2, 3, 0}));
  EXPECT_EQ(r.weights, std::vector<float>(9, 1.0F));
}

TEST(routing_conformance, softmax_group_sums_the_two_largest_probabilities) {
  // Groups {ln 8, -9}, {ln 5, ln 4}: logits' best group is 0, the probabilities' 1.
  const std::vector<float> logits = {std::log(8.0F), -9, std::log(5.0F), std::log(4.0F)};
  routing_rule rule{.method = routing_method::softmax_group, .groups = 2, .groups_kept = 1};
  routed r = route_every_form(with(rule, 2, 4), logits);
  EXPECT_EQ(r.ids, (ids{2, 3}));
  expect_near(r.weights, {5.0 / 9, 4.0 / 9});
  rule.renormalise = false;
  rule.scaling = 2;
  expect_near(route_every_form(with(rule, 2, 4), logits).weights,
              {10.0 / (17 + std::exp(-9)), 8.0 / (17 + std::exp(-9))});
}

TEST(routing_conformance, softmax_bias_adds_to_the_probability_and_floors_the_sum) {
  // p = .5 .25 .125 .125
  const std::vector<float> logits = {std::log(4.0F), std::log(2.0F), 0, 0};
  const layer_routing layer = biased({-.4F, 0, .2F, 0});
  routing_rule rule{.method = routing_method::softmax_bias, .epsilon = 1e-12F};
  routed r = route_every_form(with(rule, 2, 4), logits, layer);
  EXPECT_EQ(r.ids, (ids{2, 1}));
  expect_near(r.weights, {1.0 / 3, 2.0 / 3});
  rule.epsilon = .75F;
  expect_near(route_every_form(with(rule, 2, 4), logits, layer).weights, {1.0 / 6, 1.0 / 3});
}

TEST(routing_conformance, softmax_bias_raw_may_choose_identity_experts) {
  const std::vector<float> logits = {std::log(4.0F), std::log(2.0F), 0, 0};
  const routing_params params{
      {.method = routing_method::softmax_bias_raw, .scaling = 6, .identity_experts = 2}, 2, 3};
  const routed r = route_every_form(params, logits, biased({-.4F, 0, 0, .2F}));
  EXPECT_EQ(r.ids, (ids{3, 1, 2}));
  expect_near(r.weights, {.75, 1.5, .75});
}

TEST(routing_conformance, softmax_pnorm_divides_by_the_norm_of_the_chosen) {
  const std::vector<float> logits = {std::log(4.0F), std::log(3.0F), 0, -k_infinity};
  const routed r =
      route_every_form(with({.method = routing_method::softmax_pnorm, .power = 2}, 2, 4), logits);
  EXPECT_EQ(r.ids, (ids{0, 1}));
  expect_near(r.weights, {.8, .6});
  EXPECT_EQ(route_every_form(with({.method = routing_method::softmax_pnorm}, 2, 4), logits),
            route_every_form(with({.method = routing_method::renormalize}, 2, 4), logits));
}

}  // namespace
}  // namespace moetier::kernels
