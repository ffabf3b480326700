// Routing: the worked vectors, the rules of order and of values that are not finite, an independent
// full sort in double, and both forms of the row kernels in bits.
#include "kernels/routing/route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/routing/route_rows.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
constexpr routing_method k_methods[] = {routing_method::default_softmax,
                                        routing_method::renormalize,
                                        routing_method::renormalize_naive};

struct routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  error refusal{.code = status::ok, .why = reason::none, .text = {}};

  bool ok() const { return refusal.why == reason::none; }
  bool operator==(const routed& other) const {
    return ids == other.ids && refusal.text == other.refusal.text &&
           std::equal(weights.begin(), weights.end(), other.weights.begin(), other.weights.end(),
                      [](float a, float b) {
                        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
                      });
  }
};

std::vector<const row_kernels*> kernels_here() {
  const cpu_features features = detect_cpu_features();
  if (features.avx2 && features.fma) return {&k_row_kernels_scalar, &k_row_kernels_avx2};
  return {&k_row_kernels_scalar};
}

routed route_on(const row_kernels& kernels, const routing_params& params, const void* logits,
                dtype type, std::size_t pitch_bytes, std::uint32_t tokens,
                routing_kernel kernel = routing_kernel::generic) {
  routed r{.ids = std::vector<std::int32_t>(std::size_t{tokens} * params.top_k, -7),
           .weights = std::vector<float>(std::size_t{tokens} * params.top_k, -7.0F)};
  const auto done =
      route_rows(kernels, kernel, params, {},
                 {.logits = logits, .type = type, .pitch_bytes = pitch_bytes, .tokens = tokens},
                 {.ids = r.ids, .weights = r.weights});
  if (!done) r = {.ids = {}, .weights = {}, .refusal = done.error()};
  return r;
}

// Routes with every form of the row kernels and through route(); all must agree in bits.
routed route_all(const routing_params& params, const std::vector<float>& logits) {
  const auto tokens = static_cast<std::uint32_t>(logits.size() / params.experts);
  const std::size_t pitch = params.experts * sizeof(float);
  const routed first =
      route_on(k_row_kernels_scalar, params, logits.data(), dtype::f32, pitch, tokens);
  const routing_kernel chosen = choose_kernel(params).kernel;
  for (const row_kernels* kernels : kernels_here()) {
    for (const routing_kernel kernel : {routing_kernel::generic, chosen})
      EXPECT_EQ(route_on(*kernels, params, logits.data(), dtype::f32, pitch, tokens, kernel),
                first);
  }
  if (first.ok()) {
    routed r = first;
    EXPECT_TRUE(route(params, {}, {.logits = logits.data(), .pitch_bytes = pitch, .tokens = tokens},
                      r.ids, r.weights));
    EXPECT_EQ(r, first);
  }
  return first;
}

void expect_near(const std::vector<float>& weights, std::initializer_list<double> truth) {
  ASSERT_EQ(weights.size(), truth.size());
  std::size_t j = 0;
  for (const double value : truth) EXPECT_NEAR(weights[j++], value, 1e-6);
}

const std::vector<float> k_a = {2, 1, .5F, -1, 0, 3, -2, 1};

TEST(route, gives_the_worked_vectors) {
  const routed plain = route_all({{.method = routing_method::default_softmax}, 8, 3}, k_a);
  EXPECT_EQ(plain.ids, (std::vector<std::int32_t>{5, 0, 1}));
  expect_near(plain.weights, {.556955, .204892, .075376});
  for (const routing_method method :
       {routing_method::renormalize, routing_method::renormalize_naive}) {
    const routed r = route_all({{.method = method}, 8, 3}, k_a);
    EXPECT_EQ(r.ids, (std::vector<std::int32_t>{5, 0, 1}));
    expect_near(r.weights, {.665241, .244728, .090031});
  }
}

TEST(route, gives_weight_one_exactly_when_one_expert_is_renormalised) {
  EXPECT_EQ(route_all({{.method = routing_method::renormalize}, 8, 1}, k_a).weights,
            std::vector<float>{1.0F});
}

TEST(route, breaks_ties_to_the_lower_id_and_takes_minus_zero_as_zero) {
  for (const routing_method method : k_methods) {
    for (const std::uint32_t experts : {1u, 2u, 31u, 32u, 33u, 128u, 257u, 4096u}) {
      for (const float value : {0.0F, -3.5F, 1e30F, -1e30F}) {
        const std::uint32_t k = std::min(experts, 256u);
        const routed r =
            route_all({{.method = method}, experts, k}, std::vector<float>(experts, value));
        std::vector<std::int32_t> first(k);
        std::iota(first.begin(), first.end(), 0);
        ASSERT_EQ(r.ids, first) << experts << " " << value;
      }
    }
    EXPECT_EQ(route_all({{.method = method}, 4, 3}, {-0.0F, 0.0F, -0.0F, 0.0F}).ids,
              (std::vector<std::int32_t>{0, 1, 2}));
    EXPECT_EQ(route_all({{.method = method}, 4, 2}, {-1.0F, 0.0F, -0.0F, 0.0F}).ids,
              (std::vector<std::int32_t>{1, 2}));
  }
}

// Full stable sort and softmax in double, sharing nothing with the product.
void expect_oracle(const routing_params& params, const std::vector<float>& logits,
                   const routed& r) {
  const std::size_t tokens = logits.size() / params.experts;
  ASSERT_EQ(r.ids.size(), tokens * params.top_k);
  for (std::size_t t = 0; t < tokens; ++t) {
    const float* row = &logits[t * params.experts];
    std::vector<std::int32_t> order(params.experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
    const std::size_t summed =
        params.rule.method == routing_method::default_softmax ? params.experts : params.top_k;
    double sum = 0;
    for (std::size_t j = 0; j < summed; ++j)
      sum += std::exp(double{row[order[j]]} - double{row[order[0]]});
    for (std::size_t j = 0; j < params.top_k; ++j) {
      ASSERT_EQ(r.ids[t * params.top_k + j], order[j]) << "token " << t << " position " << j;
      // Long chains of small terms behind a large one drift: renormalising adds k terms in a row,
      // softmax E/32 per lane.
      ASSERT_NEAR(r.weights[t * params.top_k + j],
                  std::exp(double{row[order[j]]} - double{row[order[0]]}) / sum,
                  summed <= 512 && params.top_k <= 32 ? 1e-6 : 4e-6)
          << "E " << params.experts << " k " << params.top_k;
    }
  }
}

TEST(route, agrees_with_a_full_stable_sort_in_double) {
  std::mt19937 random(51);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  for (const routing_method method : k_methods) {
    for (const std::uint32_t experts :
         {1u, 2u, 3u, 5u, 7u, 60u, 128u, 160u, 256u, 257u, 384u, 512u, 4096u}) {
      for (const std::uint32_t k : {1u, 2u, 4u, 8u, 16u, 17u, 32u, 33u, 64u, 256u}) {
        if (k > experts) continue;
        std::vector<float> logits(std::size_t{experts} * 12);
        for (std::size_t i = 0; i < logits.size(); ++i) {
          logits[i] = normal(random);
          // Some rows hold many ties, some are all negative, some are shifted far.
          const std::size_t t = i / experts;
          if (t % 4 == 1) logits[i] = std::round(logits[i]);
          if (t % 4 == 2) logits[i] = -std::fabs(logits[i]) - 1.0F;
          if (t % 4 == 3) logits[i] += 1000.0F;
        }
        const routing_params params{{.method = method}, experts, k};
        expect_oracle(params, logits, route_all(params, logits));
      }
    }
  }
}

TEST(route, agrees_with_the_oracle_on_sorted_rows) {
  for (const std::uint32_t experts : {64u, 300u}) {
    std::vector<float> up(experts);
    for (std::uint32_t e = 0; e < experts; ++e) up[e] = static_cast<float>(e) * 0.01F;
    std::vector<float> down(up.rbegin(), up.rend());
    for (const std::uint32_t k : {1u, 8u, 40u}) {
      const routing_params params{{.method = routing_method::renormalize}, experts, k};
      expect_oracle(params, up, route_all(params, up));
      expect_oracle(params, down, route_all(params, down));
    }
  }
}

TEST(route, follows_the_experts_when_they_are_permuted) {
  std::mt19937 random(52);
  constexpr std::uint32_t k_experts = 96;
  std::vector<float> logits(k_experts);
  for (std::uint32_t e = 0; e < k_experts; ++e) logits[e] = static_cast<float>(e) * 0.11F - 4.0F;
  std::vector<std::int32_t> moved_to(k_experts);
  std::iota(moved_to.begin(), moved_to.end(), 0);
  for (const routing_method method : k_methods) {
    const routed truth = route_all({{.method = method}, k_experts, 8}, logits);
    for (int round = 0; round < 20; ++round) {
      std::shuffle(moved_to.begin(), moved_to.end(), random);
      std::vector<float> moved(k_experts);
      for (std::uint32_t e = 0; e < k_experts; ++e)
        moved[static_cast<std::size_t>(moved_to[e])] = logits[e];
      const routed r = route_all({{.method = method}, k_experts, 8}, moved);
      for (std::size_t j = 0; j < 8; ++j) {
        EXPECT_EQ(r.ids[j], moved_to[static_cast<std::size_t>(truth.ids[j])]);
        EXPECT_NEAR(r.weights[j], truth.weights[j], 1e-6);
        if (method != routing_method::default_softmax) {
          EXPECT_EQ(r.weights[j], truth.weights[j]);
        }
      }
    }
  }
}

TEST(route, widens_bf16_and_f16_and_follows_the_pitch) {
  std::mt19937 random(53);
  std::normal_distribution<float> normal;
  constexpr std::uint32_t k_experts = 45;
  constexpr std::size_t k_pitch_elements = 51;
  for (const dtype type : {dtype::bf16, dtype::f16}) {
    std::vector<std::uint16_t> stored(3 * k_pitch_elements, 0x7fff);  // NaN between the rows
    std::vector<float> wide;
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t e = 0; e < k_experts; ++e) {
        const float value = normal(random);
        std::uint16_t& bits = stored[t * k_pitch_elements + e];
        bits = type == dtype::bf16 ? bf16_from_f32(value) : f16_from_f32(value);
        wide.push_back(type == dtype::bf16 ? f32_from_bf16(bits) : f32_from_f16(bits));
      }
    }
    for (const routing_method method : k_methods) {
      const routing_params params{{.method = method}, k_experts, 6};
      for (const row_kernels* kernels : kernels_here())
        EXPECT_EQ(route_on(*kernels, params, stored.data(), type, k_pitch_elements * 2, 3),
                  route_all(params, wide));
    }
  }
}

TEST(route, refuses_nan_and_plus_infinity_naming_the_first_row_and_column) {
  for (const routing_method method : k_methods) {
    for (const float bad : {k_nan, -k_nan, k_infinity}) {
      for (const std::uint32_t column : {0u, 7u, 8u, 31u, 32u, 44u}) {
        std::vector<float> logits(45 * 3, 0.5F);
        logits[1 * 45 + column] = bad;
        logits[2 * 45] = k_nan;
        const routed r = route_all({{.method = method}, 45, 4}, logits);
        EXPECT_EQ(r.refusal.why, reason::router_nonfinite);
        EXPECT_EQ(r.refusal.text,
                  "row 1 column " + std::to_string(column) + " of the router input is not finite");
      }
    }
  }
}

TEST(route, excludes_experts_at_minus_infinity_and_refuses_when_too_few_are_left) {
  for (const routing_method method : k_methods) {
    std::vector<float> logits(40, -k_infinity);
    logits[3] = -1.0F;
    logits[38] = 2.0F;
    logits[20] = std::numeric_limits<float>::lowest();
    const routed r = route_all({{.method = method}, 40, 3}, logits);
    EXPECT_EQ(r.ids, (std::vector<std::int32_t>{38, 3, 20}));
    expect_near(r.weights, {.952574, .047426, 0});
    EXPECT_EQ(route_all({{.method = method}, 40, 4}, logits).refusal.text,
              "row 0 has 3 selectable experts; 4 are needed");
    EXPECT_EQ(
        route_all({{.method = method}, 40, 1}, std::vector<float>(40, -k_infinity)).refusal.text,
        "row 0 has 0 selectable experts; 1 are needed");
  }
}

TEST(route, takes_zero_tokens) {
  EXPECT_TRUE(route({{.method = routing_method::renormalize}, 8, 2}, {}, {}, {}, {}));
}

TEST(route, refuses_logits_of_other_types) {
  std::vector<std::int32_t> ids(1);
  std::vector<float> weights(1);
  const std::vector<float> logits(8);
  const auto r = route(
      {{.method = routing_method::renormalize}, 8, 1}, {},
      {.logits = logits.data(), .type = dtype::i32, .pitch_bytes = 32, .tokens = 1}, ids, weights);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().text, "router logits has dtype i32; allowed: f32, bf16, f16");
}

std::string check_text(routing_method method, std::uint32_t experts, std::uint32_t k) {
  const auto checked = check_routing({{.method = method}, experts, k});
  return checked ? "" : checked.error().text;
}

TEST(check_routing, accepts_each_limit_and_refuses_the_next_value) {
  const auto method = routing_method::renormalize;
  EXPECT_EQ(check_text(method, 1, 1), "");
  EXPECT_EQ(check_text(method, 4096, 256), "");
  EXPECT_EQ(check_text(method, 0, 1), "setting routing.experts is 0; allowed: 1 to 4096");
  EXPECT_EQ(check_text(method, 4097, 1), "setting routing.experts is 4097; allowed: 1 to 4096");
  EXPECT_EQ(check_text(method, 8, 0), "setting routing.top_k is 0; allowed: 1 to 8");
  EXPECT_EQ(check_text(method, 8, 9), "setting routing.top_k is 9; allowed: 1 to 8");
  EXPECT_EQ(check_text(method, 4096, 257), "setting routing.top_k is 257; allowed: 1 to 256");
}

TEST(check_routing, knows_every_method_but_unspecified_and_refuses_other_numbers) {
  const std::string all =
      "0 (default), 1 (renormalize), 2 (deepseek_v3), 3 (llama4), 4 (renormalize_naive), 5 "
      "(minimax2), 6 (sigmoid_renorm), 7 (deepseek_v4), 9 (deepseek_v2), 10 (sqrt_softplus), 11 "
      "(sparse_mixer), 12 (static), 13 (round_robin), 14 (softmax_group), 15 (softmax_bias), 16 "
      "(softmax_bias_raw), 17 (softmax_pnorm)";
  for (std::uint8_t m = 0; m < k_routing_methods; ++m) {
    if (m != 8) {
      EXPECT_EQ(check_text(static_cast<routing_method>(m), 8, 2), "") << int{m};
    }
  }
  EXPECT_EQ(check_text(routing_method::unspecified, 8, 2),
            "setting routing.method is unspecified; allowed: " + all);
  EXPECT_EQ(check_text(static_cast<routing_method>(18), 8, 2),
            "model field routing.method is 18; supported: " + all);
}

struct given {
  std::string text;
  std::vector<float> weights;
};

given check(std::uint32_t experts, std::uint32_t k, const std::vector<std::int32_t>& ids,
            std::vector<float> weights) {
  const auto tokens = static_cast<std::uint32_t>(ids.size() / k);
  const auto checked = check_given(experts, k, tokens, ids, weights);
  return {checked ? "" : checked.error().text, weights};
}

TEST(check_given, keeps_order_and_sign_and_clears_weights_of_unused_positions) {
  const given g = check(8, 3, {7, -1, 0, -1, -1, -1}, {-2, k_nan, 0, 5, k_infinity, 1});
  EXPECT_EQ(g.text, "");
  EXPECT_EQ(g.weights, (std::vector<float>{-2, 0, 0, 0, 0, 0}));
}

TEST(check_given, refuses_ids_out_of_range) {
  EXPECT_EQ(check(8, 2, {0, 1, 3, 8}, {1, 1, 1, 1}).text,
            "row 1 position 1 names expert 8; allowed: -1 (none) or 0 to 7");
  EXPECT_EQ(check(8, 2, {-2, 1}, {1, 1}).text,
            "row 0 position 0 names expert -2; allowed: -1 (none) or 0 to 7");
  EXPECT_EQ(check(8, 1, {std::numeric_limits<std::int32_t>::min()}, {1}).text,
            "row 0 position 0 names expert -2147483648; allowed: -1 (none) or 0 to 7");
}

TEST(check_given, refuses_an_expert_named_twice_in_one_row_but_not_in_two) {
  EXPECT_EQ(check(4096, 2, {4095, 0, 0, 4095}, {1, 1, 1, 1}).text, "");
  EXPECT_EQ(check(4096, 3, {5, -1, 6, 4095, 0, 4095}, {1, 1, 1, 1, 1, 1}).text,
            "row 1 names expert 4095 twice");
}

TEST(check_given, refuses_weights_of_chosen_experts_that_are_not_finite) {
  for (const float bad : {k_nan, k_infinity, -k_infinity})
    EXPECT_EQ(check(8, 2, {0, 1}, {1, bad}).text,
              "row 0 column 1 of the router input is not finite");
}

}  // namespace
}  // namespace moetier::kernels
