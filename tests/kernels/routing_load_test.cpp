// The load generators: worked visiting orders, exact balance through the real methods, and Zipf
// noise that is the same everywhere.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/routing/load_generator.hpp"
#include "kernels/routing/philox.hpp"

namespace moetier::kernels {
namespace {

using order = std::vector<std::uint16_t>;

TEST(philox, gives_the_published_vectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (philox_counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (philox_counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (philox_counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(visiting_order, takes_workers_round_robin) {
  EXPECT_EQ(visiting_order(8, 4), (order{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(visiting_order(10, 4), (order{0, 3, 6, 8, 1, 4, 7, 9, 2, 5}));
  EXPECT_EQ(visiting_order(3, 1), (order{0, 1, 2}));
  EXPECT_EQ(visiting_order(2, 5), (order{0, 1}));
}

// Tokens of each expert over all sources, routed in two parts.
std::vector<std::uint32_t> counted(const routing_params& p, std::uint32_t workers,
                                   std::uint32_t sources, std::uint32_t tokens) {
  const balanced_load load(p, workers);
  std::vector<std::uint32_t> counts(p.columns());
  for (std::uint32_t s = 0; s < sources; ++s) {
    for (std::uint32_t first = 0; first < tokens; first += tokens / 2) {
      const std::uint32_t part = tokens / 2;
      std::vector<float> logits(std::size_t{part} * p.columns());
      load.fill({.step = 3, .source = s, .first_token = first, .tokens = part}, logits);
      std::vector<std::int32_t> ids(std::size_t{part} * p.top_k);
      std::vector<float> weights(ids.size());
      EXPECT_TRUE(route(
          p, {},
          {.logits = logits.data(), .pitch_bytes = p.columns() * sizeof(float), .tokens = part},
          ids, weights));
      for (const std::int32_t id : ids) ++counts[static_cast<std::size_t>(id)];
    }
  }
  return counts;
}

TEST(balanced_load, gives_every_expert_the_same) {
  using m = routing_method;
  for (const m method : {m::default_softmax, m::renormalize, m::llama4, m::minimax2, m::deepseek_v4,
                         m::deepseek_v3, m::sparse_mixer}) {
    EXPECT_EQ(counted({{.method = method}, 8, 2}, 4, 4, 8), std::vector<std::uint32_t>(8, 8));
    EXPECT_EQ(counted({{.method = method}, 10, 3}, 4, 2, 20), std::vector<std::uint32_t>(10, 12));
  }
}

TEST(balanced_load, walks_over_groups_where_some_are_dropped) {
  using m = routing_method;
  for (const m method : {m::deepseek_v3, m::deepseek_v2, m::softmax_group}) {
    const routing_rule rule{.method = method, .groups = 8, .groups_kept = 4};
    EXPECT_EQ(counted({rule, 256, 8}, 4, 1, 256), std::vector<std::uint32_t>(256, 8));
    EXPECT_EQ(counted({rule, 256, 8}, 4, 1, 128), std::vector<std::uint32_t>(256, 4));
  }
}

TEST(balanced_load, leaves_identity_experts_alone) {
  const routing_params p{{.method = routing_method::softmax_bias_raw, .identity_experts = 4}, 8, 2};
  std::vector<std::uint32_t> wanted(12, 8);
  std::fill(wanted.begin() + 8, wanted.end(), 0U);
  EXPECT_EQ(counted(p, 4, 4, 8), wanted);
}

TEST(zipf_load, repeats_itself_and_depends_on_every_part_of_its_counter) {
  const auto drawn = [](std::uint64_t seed, load_rows rows) {
    std::vector<float> logits(std::size_t{rows.tokens} * 16);
    zipf_load(16, 1.1, seed).fill(rows, logits);
    return logits;
  };
  const load_rows rows{.step = 5, .source = 2, .first_token = 0, .tokens = 4};
  const std::vector<float> first = drawn(7, rows);
  EXPECT_EQ(first, drawn(7, rows));
  EXPECT_NE(first, drawn(8, rows));
  EXPECT_NE(first, drawn(7 + (1ull << 32), rows));
  EXPECT_NE(first, drawn(7, {.step = 6, .source = 2, .first_token = 0, .tokens = 4}));
  EXPECT_NE(first, drawn(7, {.step = 5, .source = 3, .first_token = 0, .tokens = 4}));
  // The second half alone is the second half.
  EXPECT_EQ(std::vector<float>(first.begin() + 32, first.end()),
            drawn(7, {.step = 5, .source = 2, .first_token = 2, .tokens = 2}));
}

TEST(zipf_load, gives_the_values_of_an_independent_implementation) {
  std::vector<float> logits(6);
  zipf_load(6, 1.1, 0x123456789abcdef)
      .fill({.step = 5, .source = 2, .first_token = 7, .tokens = 1}, logits);
  EXPECT_EQ(logits, (std::vector<float>{-0x1.9b6eecp+0F, -0x1.e2ee04p-2F, -0x1.aa357ap-1F,
                                        0x1.24e82ep+0F, -0x1.158a02p+1F, -0x1.310990p-2F}));
}

TEST(zipf_load, follows_its_law) {
  // Gumbel noise makes the best expert a draw with probability ~ (1 + rank)^-alpha.
  constexpr std::uint32_t k_columns = 8;
  constexpr std::uint32_t k_tokens = 200'000;
  constexpr double k_alpha = 1.2;
  std::vector<float> logits(std::size_t{k_tokens} * k_columns);
  zipf_load(k_columns, k_alpha, 11).fill({.tokens = k_tokens}, logits);
  std::vector<double> shares(k_columns);
  for (std::size_t t = 0; t < k_tokens; ++t) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(t * k_columns);
    shares[static_cast<std::size_t>(std::max_element(row, row + k_columns) - row)] +=
        1.0 / k_tokens;
  }
  std::sort(shares.rbegin(), shares.rend());
  double sum = 0;
  for (std::uint32_t r = 0; r < k_columns; ++r) sum += std::pow(1.0 + r, -k_alpha);
  for (std::uint32_t r = 0; r < k_columns; ++r)
    EXPECT_NEAR(shares[r], std::pow(1.0 + r, -k_alpha) / sum, 0.005) << r;
}

TEST(zipf_load, is_even_where_alpha_is_zero) {
  std::vector<float> flat(8);
  std::vector<float> steep(8);
  zipf_load(8, 0, 11).fill({.tokens = 1}, flat);
  zipf_load(8, 1, 11).fill({.tokens = 1}, steep);
  std::vector<double> drops;
  for (std::size_t e = 0; e < 8; ++e) drops.push_back(double{flat[e]} - double{steep[e]});
  std::sort(drops.begin(), drops.end());
  for (std::size_t r = 0; r < 8; ++r)
    EXPECT_NEAR(drops[r], std::log(1.0 + static_cast<double>(r)), 1e-6);
}

}  // namespace
}  // namespace moetier::kernels
