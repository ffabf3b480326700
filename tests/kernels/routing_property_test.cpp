// Every method that chooses by score against an independent oracle in double, and laws that hold
// between methods.
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/routing_oracle.hpp"
#include "tests/kernels/routing_shapes.hpp"

namespace moetier::kernels {
namespace {

std::string name_of(const routing_shape& shape) {
  const routing_params& p = shape.params;
  return std::string(routing_method_name(p.rule.method)) + " E " + std::to_string(p.columns()) +
         " k " + std::to_string(p.top_k) + " groups " + std::to_string(p.rule.groups) + "/" +
         std::to_string(p.rule.groups_kept) + (shape.biased ? " biased" : "");
}

struct tally {
  std::size_t rows = 0;
  std::size_t ambiguous = 0;
  std::size_t starved = 0;
};

// Routes random rows of one shape and compares them with the oracle's. Weights may be off by
// `tolerance` of the larger of 1 and themselves: long sums drift.
void expect_oracle(const routing_shape& shape, std::uint32_t tokens, double tolerance,
                   std::mt19937& random, tally& seen) {
  const routing_params& p = shape.params;
  const layer_routing layer = layer_of(shape, random);
  const std::vector<float> logits = rows_of(p.columns(), tokens, random);
  const routed r = route_every_form(p, logits, layer, {}, true);
  ASSERT_EQ(r.refusal, "");
  for (std::size_t t = 0; t < tokens; ++t, ++seen.rows) {
    const oracle::answer truth =
        oracle::route(p.rule, p.top_k, layer, &logits[t * p.columns()], p.columns());
    if (truth.ambiguous) {
      ++seen.ambiguous;
      continue;
    }
    ASSERT_EQ(r.flags[t], truth.starved ? 1 : 0) << name_of(shape) << " row " << t;
    seen.starved += truth.starved ? 1U : 0U;
    for (std::size_t j = 0; j < p.top_k; ++j) {
      const std::int32_t id = r.ids[t * p.top_k + j];
      const float weight = r.weights[t * p.top_k + j];
      ASSERT_EQ(id, truth.starved ? -1 : truth.ids[j]) << name_of(shape) << " row " << t;
      const double wanted = truth.starved ? 0 : truth.weights[j];
      ASSERT_NEAR(weight, wanted, tolerance * std::max(1.0, std::fabs(wanted)))
          << name_of(shape) << " row " << t << " position " << j;
    }
  }
}

TEST(routing, agrees_with_an_oracle_in_double_for_every_method) {
  std::mt19937 random(61);
  tally seen;
  for (const routing_shape& shape : routing_shapes()) {
    expect_oracle(shape, 60, 1e-6, random, seen);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(seen.ambiguous, seen.rows / 10);
  EXPECT_GT(seen.starved, 0U);
}

TEST(routing, agrees_with_the_oracle_at_the_bounds_of_experts_and_k) {
  using m = routing_method;
  std::mt19937 random(65);
  tally seen;
  for (std::uint8_t number = 0; number < k_routing_methods; ++number) {
    const auto method = static_cast<m>(number);
    if (method == m::unspecified || method == m::static_table || method == m::round_robin) continue;
    const bool may_bias = method == m::deepseek_v3 || method == m::minimax2 ||
                          method == m::sqrt_softplus || method == m::deepseek_v4 ||
                          method == m::softmax_bias || method == m::softmax_bias_raw;
    for (const auto& [experts, k] : {std::pair{1U, 1U}, {4096U, 1U}, {4096U, 256U}, {256U, 256U}}) {
      for (const bool with_bias : {false, true}) {
        if (with_bias && !may_bias) continue;
        expect_oracle({{{.method = method, .epsilon = 0.01F}, experts, k}, with_bias}, 6, 1e-5,
                      random, seen);
        if (HasFatalFailure()) return;
      }
    }
  }
  for (const m method : {m::deepseek_v3, m::deepseek_v2, m::softmax_group}) {
    for (const auto& [groups, kept] : {std::pair{4096U, 256U}, {2048U, 128U}, {2U, 1U}}) {
      expect_oracle({{{.method = method, .groups = groups, .groups_kept = kept}, 4096, 256}}, 6,
                    1e-5, random, seen);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(seen.rows, 2 * seen.ambiguous);
}

TEST(routing, follows_the_experts_when_they_are_permuted) {
  std::mt19937 random(66);
  for (const routing_shape& shape : routing_shapes()) {
    const routing_params& p = shape.params;
    if (p.rule.groups > 1 || p.rule.identity_experts > 0) continue;
    const layer_routing layer = layer_of(shape, random);
    std::vector<float> logits(p.columns());
    std::vector<std::int32_t> moved_to(p.columns());
    for (std::uint32_t e = 0; e < p.columns(); ++e) logits[e] = 0.11F * static_cast<float>(e % 97);
    std::shuffle(logits.begin(), logits.end(), random);
    if (p.columns() > 97) continue;  // ties fall to the lower id, which permuting changes
    std::iota(moved_to.begin(), moved_to.end(), 0);
    std::shuffle(moved_to.begin(), moved_to.end(), random);
    std::vector<float> moved(logits.size());
    layer_routing moved_layer = layer;
    for (std::size_t e = 0; e < logits.size(); ++e) {
      const auto to = static_cast<std::size_t>(moved_to[e]);
      moved[to] = logits[e];
      if (!layer.bias.empty()) moved_layer.bias[to] = layer.bias[e];
    }
    const routed truth = route_every_form(p, logits, layer);
    const routed r = route_every_form(p, moved, moved_layer);
    for (std::size_t j = 0; j < p.top_k; ++j) {
      ASSERT_EQ(r.ids[j], moved_to[static_cast<std::size_t>(truth.ids[j])]) << name_of(shape);
      ASSERT_NEAR(r.weights[j], truth.weights[j], 1e-6) << name_of(shape);
    }
  }
}

routed by(routing_rule rule, std::uint32_t experts, std::uint32_t k,
          const std::vector<float>& logits, const layer_routing& layer = {}) {
  return route_every_form({.rule = rule, .experts = experts, .top_k = k}, logits, layer);
}

TEST(routing, keeping_all_groups_is_having_one) {
  std::mt19937 random(62);
  std::vector<float> logits(96 * 40);
  std::normal_distribution<float> normal;
  for (float& x : logits) x = 20 * normal(random);  // sigmoid saturates, logits do not
  std::vector<float> bias(96);
  for (float& b : bias) b = normal(random);
  for (const routing_method method :
       {routing_method::deepseek_v3, routing_method::deepseek_v2, routing_method::softmax_group}) {
    routing_rule rule{.method = method, .groups = 12, .groups_kept = 12};
    const routed all = by(rule, 96, 8, logits);
    rule.groups = 1;
    rule.groups_kept = 7;  // ignored
    EXPECT_EQ(all, by(rule, 96, 8, logits));
  }
  routing_rule rule{.method = routing_method::deepseek_v3, .groups = 12, .groups_kept = 12};
  const routed all = by(rule, 96, 8, logits, biased(bias));
  rule.groups = 1;
  EXPECT_EQ(all, by(rule, 96, 8, logits, biased(bias)));
}

TEST(routing, methods_that_differ_in_name_only_are_equal_in_bits) {
  std::mt19937 random(63);
  const std::vector<float> logits = rows_of(64, 4, random);
  const std::vector<float> bias(64, 0.0F);
  EXPECT_EQ(by({.method = routing_method::minimax2}, 64, 6, logits),
            by({.method = routing_method::sigmoid_renorm}, 64, 6, logits));
  EXPECT_EQ(by({.method = routing_method::deepseek_v4}, 64, 6, logits),
            by({.method = routing_method::sqrt_softplus}, 64, 6, logits));
  EXPECT_EQ(by({.method = routing_method::deepseek_v3}, 64, 6, logits, biased(bias)),
            by({.method = routing_method::minimax2}, 64, 6, logits, biased(bias)));
}

TEST(routing, equal_rows_choose_the_first_experts_whatever_the_method) {
  for (const routing_shape& shape : routing_shapes()) {
    const routing_params& p = shape.params;
    if (shape.biased) continue;
    for (const float value : {0.0F, -0.0F, -7.5F, 30.0F, 1e-40F}) {
      const routed r = route_every_form(p, std::vector<float>(p.columns(), value));
      for (std::uint32_t j = 0; j < p.top_k; ++j)
        ASSERT_EQ(r.ids[j], static_cast<std::int32_t>(j)) << name_of(shape) << " " << value;
    }
  }
}

TEST(routing, never_gives_nan_where_all_scores_vanish) {
  const std::vector<float> low(16, -200.0F);
  for (const float epsilon : {0.0F, 1e-20F}) {
    for (const routing_method method :
         {routing_method::deepseek_v3, routing_method::minimax2, routing_method::sigmoid_renorm,
          routing_method::sqrt_softplus}) {
      const routed r = by({.method = method, .epsilon = epsilon}, 16, 4, low);
      EXPECT_EQ(r.weights, std::vector<float>(4, 0.0F)) << int(method);
    }
  }
}

TEST(routing, excludes_minus_infinity_in_every_method) {
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  for (const routing_shape& shape : routing_shapes()) {
    const routing_params& p = shape.params;
    if (p.rule.groups > 1 || p.top_k == p.columns()) continue;
    layer_routing layer;
    if (shape.biased) {
      layer.bias.assign(p.columns(), 0.0F);
      layer.bias[0] = 100.0F;  // the bias cannot bring an excluded expert back
    }
    std::vector<float> logits(p.columns(), 0.5F);
    logits[0] = -k_infinity;
    const routed r = route_every_form(p, logits, layer);
    for (std::uint32_t j = 0; j < p.top_k; ++j)
      ASSERT_EQ(r.ids[j], static_cast<std::int32_t>(j + 1)) << name_of(shape);
    std::fill(logits.begin() + p.top_k, logits.end(), -k_infinity);
    EXPECT_EQ(route_every_form(p, logits, layer).refusal,
              "row 0 has " + std::to_string(p.top_k - 1) + " selectable experts; " +
                  std::to_string(p.top_k) + " are needed")
        << name_of(shape);
  }
}

TEST(routing, refuses_nan_and_plus_infinity_in_every_method) {
  for (const routing_shape& shape : routing_shapes()) {
    const routing_params& p = shape.params;
    layer_routing layer;
    if (shape.biased) layer.bias.assign(p.columns(), 0.0F);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> logits(std::size_t{p.columns()} * 2, 0.5F);
      logits.back() = bad;
      EXPECT_EQ(
          route_every_form(p, logits, layer).refusal,
          "row 1 column " + std::to_string(p.columns() - 1) + " of the router input is not finite")
          << name_of(shape);
    }
  }
}

}  // namespace
}  // namespace moetier::kernels
