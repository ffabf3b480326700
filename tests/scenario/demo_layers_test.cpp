// The demo model's MoE layers over threads: right against an independent implementation's outputs,
// and in exact mode the same bits whatever the tier looks like.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "schemas/safetensors/tensor_file.hpp"
#include "tests/scenario/thread_tier.hpp"

namespace moetier::scenario {
namespace {

const std::string k_demo = std::string(MOETIER_SOURCE_DIR) + "/deploy/demo";
constexpr std::uint32_t k_rows = 64;

std::vector<float> tensor(const std::string& name) {
  static const auto file = *tensor_file::open(k_demo + "/vectors/moe_vectors.safetensors");
  const tensor_info* info = file->header().find(name);
  if (info == nullptr) throw std::runtime_error(name);
  std::vector<float> values(info->bytes() / 4);
  if (!file->read(*info, std::as_writable_bytes(std::span(values)))) throw std::runtime_error(name);
  return values;
}

struct layer_case {
  std::string prefix;
  layer_id layer;
};

std::vector<layer_case> all_cases() {
  std::vector<layer_case> cases;
  for (const char* domain : {"scripture", "novel", "code"}) {
    for (std::uint16_t l = 0; l < 4; ++l) {
      cases.push_back({std::string(domain) + ".layer" + std::to_string(l), layer_id{l}});
    }
  }
  return cases;
}

std::vector<float> forward(client::source_session& session, const layer_case& c,
                           std::uint32_t rows_at_once = k_rows) {
  const std::vector<float> hidden = tensor(c.prefix + ".hidden");
  const std::vector<float> logits = tensor(c.prefix + ".logits");
  const std::size_t h = hidden.size() / k_rows;
  const std::size_t e = logits.size() / k_rows;
  std::vector<float> output(hidden.size());
  for (std::uint32_t from = 0; from < k_rows; from += rows_at_once) {
    const std::uint32_t rows = std::min(rows_at_once, k_rows - from);
    EXPECT_TRUE(session.step_begin(false).has_value());
    const auto sent = session.submit({.layer = c.layer,
                                      .tokens = rows,
                                      .hidden = hidden.data() + from * h,
                                      .hidden_pitch = h * 4,
                                      .logits = logits.data() + from * e,
                                      .logits_pitch = e * 4});
    EXPECT_TRUE(sent.has_value()) << (sent ? "" : sent.error().text);
    const auto got = session.collect(0, {.output = output.data() + from * h, .pitch = h * 4});
    EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().text);
    EXPECT_TRUE(session.step_end().has_value());
  }
  return output;
}

double largest_error(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(double(a[i]) - double(b[i])));
  }
  return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

TEST(demo_layers, partial_sums_agree_with_the_independent_implementation) {
  thread_tier tier(k_demo + "/model", {11, 11, 10});
  const auto session = tier.session({.tokens_max = k_rows});
  for (const layer_case& c : all_cases()) {
    EXPECT_LE(largest_error(forward(*session, c), tensor(c.prefix + ".output")), 1e-5) << c.prefix;
  }
}

TEST(demo_layers, the_reference_backend_agrees_too) {
  thread_tier tier(k_demo + "/model", {16, 16}, {.backend = "cpu_ref"});
  const auto session = tier.session({.tokens_max = k_rows});
  for (const layer_case& c : all_cases()) {
    EXPECT_LE(largest_error(forward(*session, c), tensor(c.prefix + ".output")), 1e-5) << c.prefix;
  }
}

TEST(demo_layers, exact_bits_depend_on_no_placement_worker_count_or_split) {
  std::vector<std::vector<float>> first;
  for (const std::vector<std::uint32_t>& slots : {std::vector<std::uint32_t>{32},
                                                  {16, 16},
                                                  {32, 32},
                                                  {11, 11, 10},
                                                  {16, 16, 16},
                                                  {8, 8, 8, 8},
                                                  {20, 20, 20, 20}}) {
    thread_tier tier(k_demo + "/model", slots);
    const auto whole = tier.session({.tokens_max = k_rows, .mode = kernels::return_mode::exact});
    const auto chunked = tier.session(
        {.tokens_max = k_rows, .mode = kernels::return_mode::exact, .rows_per_chunk_max = 7});
    std::size_t i = 0;
    for (const layer_case& c : all_cases()) {
      const std::vector<float> y = forward(*whole, c);
      EXPECT_LE(largest_error(y, tensor(c.prefix + ".output")), 1e-5) << c.prefix;
      if (first.size() <= i) first.push_back(y);
      EXPECT_TRUE(same_bits(y, first[i])) << c.prefix << " on " << slots.size() << " workers";
      EXPECT_TRUE(same_bits(forward(*chunked, c), first[i])) << c.prefix << " in chunks";
      EXPECT_TRUE(same_bits(forward(*whole, c, 13), first[i])) << c.prefix << " in calls of 13";
      ++i;
    }
  }
}

TEST(demo_layers, a_lost_worker_costs_a_replay_and_no_bit) {
  thread_tier tier(k_demo + "/model", {22, 22, 22});
  const auto session = tier.session({.tokens_max = k_rows, .mode = kernels::return_mode::exact});
  const layer_case c{"novel.layer2", layer_id{2}};
  const std::vector<float> before = forward(*session, c);
  tier.kill(1);
  EXPECT_TRUE(same_bits(forward(*session, c), before));
}

TEST(demo_layers, a_worker_masked_for_a_while_serves_again) {
  thread_tier tier(k_demo + "/model", {32, 32});
  const auto session = tier.session({.tokens_max = k_rows, .mode = kernels::return_mode::exact});
  const layer_case c{"novel.layer2", layer_id{2}};
  const std::vector<float> before = forward(*session, c);
  tier.mask(1, true);
  EXPECT_TRUE(same_bits(forward(*session, c), before));
  tier.mask(1, false);
  EXPECT_TRUE(same_bits(forward(*session, c), before));
}

TEST(demo_layers, without_a_replica_the_lost_experts_are_named) {
  thread_tier tier(k_demo + "/model", {16, 16});
  const auto session = tier.session({.tokens_max = k_rows});
  tier.kill(1);
  const layer_case c{"code.layer1", layer_id{1}};
  const std::vector<float> hidden = tensor(c.prefix + ".hidden");
  const std::vector<float> weights(4, 0.25F);
  std::vector<float> output(256);
  const auto one = [&](const std::vector<std::int32_t>& ids) -> expected<void> {
    if (auto ok = session->step_begin(false); !ok) return ok;
    if (auto ok = session->submit({.layer = c.layer,
                                   .tokens = 1,
                                   .hidden = hidden.data(),
                                   .hidden_pitch = 1024,
                                   .ids = ids,
                                   .weights = weights});
        !ok) {
      return ok;
    }
    return session->collect(0, {.output = output.data(), .pitch = 1024});
  };
  EXPECT_TRUE(one({0, 1, 2, 15}).has_value());
  const auto lost = one({0, 1, 2, 16});
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, status::unavailable);
  EXPECT_EQ(lost.error().text, "layer 1 expert 16 has no live replica");
  EXPECT_TRUE(one({3, 4, 5, 6}).has_value());
}

}  // namespace
}  // namespace moetier::scenario
