// The rows of the device bench: floors are those of the design's tables, and weights rotate far
// enough.
#include "actors/cli/device_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace moetier::cli {
namespace {

constexpr auto k_fp8 = quant_kind::fp8_block;
constexpr auto k_bf16 = quant_kind::none;

const device_shape& shape_named(std::string_view name) {
  for (const device_shape& s : device_shapes())
    if (s.name == name) return s;
  throw std::out_of_range(std::string(name));
}

double expected_floor(std::string_view name, quant_kind quant, std::uint32_t tokens) {
  const device_shape& s = shape_named(name);
  return floor_us(s, quant, tokens, expected_active(s, tokens));
}

TEST(device_rows, floors_of_a_deepseek_worker) {
  struct row {
    std::uint32_t tokens;
    double active, bf16, fp8;
  };
  for (const row& r : {row{1, 1, 19.6, 9.8}, row{8, 7.2, 141, 70.3}, row{64, 27.8, 545, 272},
                       row{256, 32, 628, 314}, row{1024, 32, 633, 318}, row{4096, 32, 652, 333},
                       row{16384, 32, 1827, 962}}) {
    EXPECT_NEAR(expected_active(shape_named("dsv3_ep8"), r.tokens), r.active, 0.05) << r.tokens;
    EXPECT_NEAR(expected_floor("dsv3_ep8", k_bf16, r.tokens), r.bf16, r.bf16 < 100 ? 0.051 : 0.501);
    EXPECT_NEAR(expected_floor("dsv3_ep8", k_fp8, r.tokens), r.fp8, r.fp8 < 100 ? 0.051 : 0.501);
  }
}

TEST(device_rows, floors_of_whole_layers) {
  EXPECT_NEAR(expected_floor("qwen3", k_fp8, 1), 8.4, 0.05);
  EXPECT_NEAR(expected_floor("qwen3", k_fp8, 8), 54.2, 0.1);
  EXPECT_NEAR(expected_floor("qwen3", k_fp8, 64), 132, 0.5);
  EXPECT_NEAR(expected_floor("qwen3", k_fp8, 1024), 136, 0.5);
  EXPECT_NEAR(expected_floor("qwen3", k_fp8, 16384), 825, 0.5);
  EXPECT_NEAR(expected_floor("qwen3", k_bf16, 1), 16.8, 0.05);
  EXPECT_NEAR(expected_floor("qwen3", k_bf16, 64), 264, 0.5);
  EXPECT_NEAR(expected_floor("qwen3", k_bf16, 1024), 270, 0.5);
  EXPECT_NEAR(expected_floor("qwen3", k_bf16, 16384), 1566, 0.5);
  EXPECT_NEAR(expected_floor("mixtral", k_bf16, 1), 157, 0.5);
  EXPECT_NEAR(expected_floor("mixtral", k_bf16, 64), 627, 0.5);
  EXPECT_NEAR(expected_floor("mixtral", k_bf16, 1024), 913, 0.5);
  EXPECT_NEAR(expected_floor("mixtral", k_bf16, 4096), 3653, 0.5);
  EXPECT_NEAR(expected_floor("gpt_oss", k_bf16, 64), 1230, 0.5);
  EXPECT_NEAR(expected_floor("gpt_oss", k_bf16, 1024), 1418, 0.5);
}

TEST(device_rows, no_target_lies_below_its_floor) {
  for (const device_row& r : device_rows()) {
    const double floor = floor_us(*r.shape, r.quant, r.tokens, expected_active(*r.shape, r.tokens));
    if (r.target.us > 0) {
      EXPECT_GT(r.target.us, floor) << r.shape->name << " " << r.tokens;
    }
    if (r.target.of_probe > 0) {
      EXPECT_GE(r.target.of_probe, 1.0);
    }
  }
}

TEST(device_rows, each_row_stands_once_and_shares_its_pages_with_its_neighbours) {
  std::set<std::pair<std::string_view, std::string_view>> left;
  std::set<std::tuple<std::string_view, std::string_view, std::uint32_t, routing_kind>> seen;
  std::pair<std::string_view, std::string_view> now;
  for (const device_row& r : device_rows()) {
    const std::pair key{r.shape->name, device_format_name(r.quant)};
    EXPECT_TRUE(seen.emplace(key.first, key.second, r.tokens, r.routing).second);
    if (key != now) {
      EXPECT_FALSE(left.contains(key)) << key.first << " is filled twice";
      left.insert(now);
      now = key;
    }
  }
}

TEST(device_rows, weights_have_left_the_caches_before_they_are_read_again) {
  constexpr double k_four_caches = 4.0 * 62914560;
  for (const device_row& r : device_rows()) {
    const std::uint32_t layers = layers_of_graph(*r.shape, r.quant, r.tokens);
    const double expert = expert_bytes(*r.shape, r.quant);
    const double active =
        r.routing == routing_kind::equal ? r.shape->slots : expected_active(*r.shape, r.tokens);
    EXPECT_GE(layers, 2U);
    EXPECT_LE(layers, 16U);
    // All pages of the pool, or all that the graph reads, whichever comes back first.
    EXPECT_GT(expert * std::min(double{1} * r.shape->slots, layers * active), k_four_caches)
        << r.shape->name << " " << r.tokens;
    EXPECT_GE(routings_of(r.tokens), r.tokens > 512 ? 2U : 8U);
  }
}

}  // namespace
}  // namespace moetier::cli
