// What check_routing and check_layer refuse, with their sentences.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "kernels/routing/method_form.hpp"
#include "schemas/model/routing_override.hpp"
#include "tests/kernels/routing_case.hpp"

namespace moetier::kernels {
namespace {

using m = routing_method;
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float k_infinity = std::numeric_limits<float>::infinity();

std::string refusal(const expected<void>& checked) { return checked ? "" : checked.error().text; }

std::string rule_text(routing_rule rule, std::uint32_t experts = 16, std::uint32_t k = 4) {
  return refusal(check_routing({.rule = rule, .experts = experts, .top_k = k}));
}

routing_rule grouped(m method, std::uint32_t groups, std::uint32_t kept) {
  return {.method = method, .groups = groups, .groups_kept = kept};
}

TEST(check_routing, bounds_groups_and_what_is_kept_of_them) {
  for (const m method : {m::deepseek_v3, m::deepseek_v2, m::softmax_group}) {
    EXPECT_EQ(rule_text(grouped(method, 16, 16)), "");
    EXPECT_EQ(rule_text(grouped(method, 4, 1)), "");
    EXPECT_EQ(rule_text(grouped(method, 1, 9)), "");  // ignored
    EXPECT_EQ(rule_text(grouped(method, 0, 1)),
              "setting routing.groups is 0; allowed: divisors of 16 experts");
    EXPECT_EQ(rule_text(grouped(method, 3, 1)),
              "setting routing.groups is 3; allowed: divisors of 16 experts");
    EXPECT_EQ(rule_text(grouped(method, 4, 0)),
              "setting routing.groups_kept is 0; allowed: 1 to 4");
    EXPECT_EQ(rule_text(grouped(method, 4, 5)),
              "setting routing.groups_kept is 5; allowed: 1 to 4");
    EXPECT_EQ(rule_text(grouped(method, 4, 1), 16, 5),
              "setting routing.top_k is 5; allowed: 1 to 4, the experts of the groups kept");
  }
  EXPECT_EQ(rule_text(grouped(m::renormalize, 2, 1)),
            "setting routing.groups is 2; allowed: 1 with this method");
}

TEST(check_routing, bounds_scaling_epsilon_and_power) {
  EXPECT_EQ(rule_text({.method = m::deepseek_v3, .scaling = 2.5F}), "");
  EXPECT_EQ(rule_text({.method = m::renormalize, .scaling = 2.5F}),
            "setting routing.scaling is 2.5; allowed: 1 with this method");
  for (const float wrong : {0.0F, -1.0F, k_nan, k_infinity})
    EXPECT_NE(rule_text({.method = m::deepseek_v3, .scaling = wrong}), "");
  EXPECT_EQ(rule_text({.method = m::minimax2, .epsilon = 0}), "");
  EXPECT_EQ(rule_text({.method = m::minimax2, .epsilon = -1}),
            "setting routing.epsilon is -1; allowed: finite, 0 or above");
  EXPECT_EQ(rule_text({.method = m::sparse_mixer, .epsilon = 0}),
            "setting routing.epsilon is 0; allowed: finite, above 0");
  EXPECT_EQ(rule_text({.method = m::softmax_pnorm, .power = 0}),
            "setting routing.power is 0; allowed: finite, above 0");
}

TEST(check_routing, allows_identity_experts_where_the_method_has_them) {
  EXPECT_EQ(rule_text({.method = m::softmax_bias_raw, .identity_experts = 4080}), "");
  EXPECT_EQ(rule_text({.method = m::softmax_bias_raw, .identity_experts = 4081}),
            "setting routing.identity_experts is 4081; allowed: 0 to 4080");
  EXPECT_EQ(rule_text({.method = m::softmax_bias_raw, .identity_experts = 4}, 2, 6), "");
  EXPECT_EQ(rule_text({.method = m::softmax_bias_raw, .identity_experts = 4}, 2, 7),
            "setting routing.top_k is 7; allowed: 1 to 6");
  EXPECT_EQ(rule_text({.method = m::softmax_bias, .identity_experts = 1}),
            "setting routing.identity_experts is 1; allowed: 0 with this method");
}

std::string layer_text(m method, const layer_routing& layer, std::uint32_t k = 2) {
  return refusal(check_layer({.rule = {.method = method}, .experts = 4, .top_k = k}, layer));
}

// Which parameters a method reads stands twice: as refusals of settings, and as what is computed.
TEST(check_routing, settings_are_taken_where_the_method_is_computed_with_them) {
  const std::set with_epsilon{weight_kind::share, weight_kind::floored_share,
                              weight_kind::near_softmax};
  for (unsigned i = 0; i < k_routing_methods; ++i) {
    const auto method = static_cast<routing_method>(i);
    if (method == routing_method::unspecified) continue;
    const method_form& form = form_of(method);
    const auto taken = [&](routing_override given) {
      model_description model;
      model.experts = 16;
      model.top_k = 2;
      given.method = method;
      return apply_routing(given, model).has_value();
    };
    const std::string_view name = routing_method_name(method);
    EXPECT_TRUE(taken({})) << name;
    EXPECT_EQ(taken({.groups = 4, .groups_kept = 2}), form.groups != group_kind::none) << name;
    EXPECT_EQ(taken({.scaling = 2.5F}), form.scaled) << name;
    EXPECT_EQ(taken({.epsilon = 0.5F}), with_epsilon.contains(form.weight)) << name;
    EXPECT_EQ(taken({.power = 3.0F}), form.weight == weight_kind::power_norm) << name;
    // default_softmax is renormalize_naive without the division.
    EXPECT_EQ(taken({.renormalise = false}),
              form.may_keep || method == routing_method::default_softmax)
        << name;
  }
}

TEST(check_layer, wants_a_bias_of_all_columns_and_finite) {
  EXPECT_EQ(layer_text(m::deepseek_v3, {}), "");
  EXPECT_EQ(layer_text(m::deepseek_v3, biased({0, 1, -1, 3e38F})), "");
  EXPECT_EQ(layer_text(m::deepseek_v3, biased({0, 1, -1})),
            "weights: selection bias: found 3 values, expected 4");
  EXPECT_EQ(layer_text(m::deepseek_v3, biased({0, 1, k_nan, 0})),
            "weights: selection bias: found nan at 2, expected finite values");
  EXPECT_EQ(layer_text(m::deepseek_v3, biased({0, -k_infinity, 0, 0})),
            "weights: selection bias: found -inf at 1, expected finite values");
  const routing_params identities{
      .rule = {.method = m::softmax_bias_raw, .identity_experts = 2}, .experts = 4, .top_k = 2};
  EXPECT_EQ(refusal(check_layer(identities, biased(std::vector<float>(6)))), "");
  EXPECT_EQ(refusal(check_layer(identities, biased(std::vector<float>(4)))),
            "weights: selection bias: found 4 values, expected 6");
}

TEST(check_layer, refuses_what_the_method_cannot_use) {
  EXPECT_EQ(layer_text(m::renormalize, biased({0, 0, 0, 0})),
            "setting routing.method is renormalize in a layer with a bias; allowed: a method that "
            "uses it");
  layer_routing scaled;
  scaled.expert_scale = {1, 2, 3, 4};
  EXPECT_EQ(layer_text(m::renormalize, scaled), "");
  EXPECT_NE(layer_text(m::deepseek_v3, scaled), "");
  scaled.expert_scale[1] = k_infinity;
  EXPECT_EQ(layer_text(m::renormalize, scaled),
            "weights: expert scale: found inf at 1, expected finite values");
  EXPECT_NE(layer_text(m::renormalize, tabled({0, 1}, 1)), "");
  layer_routing both = tabled({0, 1}, 1);
  both.bias = {0, 0, 0, 0};
  EXPECT_NE(layer_text(m::deepseek_v4, both), "");  // hashed or learned, not both
  layer_routing weighed = tabled({0, 1}, 1);
  weighed.table_weights = {1, 1};
  EXPECT_EQ(layer_text(m::static_table, weighed), "");
  EXPECT_NE(layer_text(m::deepseek_v4, weighed), "");
}

TEST(check_layer, wants_tables_of_k_distinct_experts_a_row) {
  for (const m method : {m::deepseek_v4, m::static_table}) {
    EXPECT_EQ(layer_text(method, tabled({0, 1, 3, 2}, 2)), "");
    EXPECT_EQ(layer_text(method, tabled({0, 1, 3, 2}, 2), 1),
              "weights: routing table: found 4 ids in 2 rows, expected 1 ids a row");
    EXPECT_EQ(layer_text(method, tabled({0, 1, 4, 2}, 2)),
              "weights: routing table row 1: found expert 4, expected 0 to 3");
    EXPECT_EQ(layer_text(method, tabled({0, 1, 2, 2}, 2)),
              "weights: routing table row 1: found expert 2 twice, expected distinct experts");
  }
  EXPECT_EQ(layer_text(m::static_table, {}),
            "weights: routing table: found 0 ids in 0 rows, expected 2 ids a row");
  EXPECT_EQ(layer_text(m::deepseek_v4, {}), "");
  EXPECT_NE(layer_text(m::deepseek_v4, tabled({}, 3)), "");
  layer_routing weighed = tabled({0, 1}, 1);
  weighed.table_weights = {1};
  EXPECT_EQ(layer_text(m::static_table, weighed),
            "weights: routing table weights: found 1 values, expected 2");
}

}  // namespace
}  // namespace moetier::kernels
