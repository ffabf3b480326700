#include "actors/cli/bench_load.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace moetier::cli {
namespace {

constexpr std::uint32_t k_experts = 8;

// How often each expert has the largest logit of a call of one token.
std::vector<int> winners(const load_wish& wish, int calls) {
  kernels::routing_params routing;
  routing.experts = k_experts;
  routing.top_k = 1;
  bench_load load(wish, routing, k_experts, 2);
  std::vector<int> counts(k_experts, 0);
  std::vector<float> logits(k_experts);
  for (int i = 0; i < calls; ++i) {
    load.fill(1, logits);
    ++counts[static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) -
                                      logits.begin())];
  }
  return counts;
}

TEST(bench_load, its_names_are_read_and_written) {
  for (const char* text : {"normal", "balanced", "zipf:1.2", "zipf:0", "zipf:8"}) {
    const auto wish = parse_load(text);
    ASSERT_TRUE(wish) << text;
    EXPECT_EQ(load_name(*wish), text);
  }
  EXPECT_EQ(parse_load("zipf")->alpha, 1.0);
  for (const char* text : {"", "even", "zipf:", "zipf:x", "zipf:1x", "zipf:-1", "zipf:nan",
                           "zipf:inf", "zipf:9", "balanced:1"}) {
    EXPECT_FALSE(parse_load(text)) << text;
  }
}

TEST(bench_load, calls_of_one_token_reach_all_experts_equally_often_when_balanced) {
  EXPECT_EQ(winners({.what = load_wish::kind::balanced}, 40), std::vector<int>(k_experts, 5));
}

TEST(bench_load, a_zipf_law_makes_one_expert_hot_and_normal_noise_none) {
  const auto hottest = [](const std::vector<int>& counts) {
    return *std::max_element(counts.begin(), counts.end());
  };
  EXPECT_GT(hottest(winners({.what = load_wish::kind::zipf, .alpha = 4.0}, 800)), 600);
  EXPECT_LT(hottest(winners({}, 800)), 200);
}

}  // namespace
}  // namespace moetier::cli
