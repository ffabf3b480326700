// Routing on a device against the host's, bit by bit, for every method with logits.
#include "kernels/cuda/sm90_f32_route.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cuda/row_tile.hpp"
#include "kernels/routing/route.hpp"
#include "tests/kernels/cuda/device_array.hpp"
#include "tests/kernels/routing_shapes.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();

struct picked {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::uint32_t status = 0;
};

template <class T>
device_array<T> unless_empty(const std::vector<T>& values) {
  return values.empty() ? nullptr : on_device(values);
}

std::vector<std::byte> as_type(const std::vector<float>& logits, dtype type) {
  std::vector<std::byte> bytes(logits.size() * dtype_bytes(type));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::uint16_t bits =
        type == dtype::bf16 ? bf16_from_f32(logits[i]) : f16_from_f32(logits[i]);
    if (type == dtype::f32) {
      std::memcpy(&bytes[4 * i], &logits[i], 4);
    } else {
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
  }
  return bytes;
}

picked on_the_device(const routing_params& params, const layer_routing& layer,
                     const std::vector<std::byte>& logits, dtype type, std::uint32_t tokens,
                     std::uint32_t live, const std::vector<std::int32_t>& token_ids,
                     const device_size& size) {
  const std::size_t picks = std::size_t{tokens} * params.top_k;
  const auto rows = on_device(logits);
  const auto count = on_device(std::vector{live});
  const auto bias = unless_empty(layer.bias);
  const auto scale = unless_empty(layer.expert_scale);
  const auto table = unless_empty(layer.table);
  const auto names = unless_empty(token_ids);
  const auto ids = on_device(std::vector<std::int32_t>(picks, -7));
  const auto weights = on_device(std::vector<float>(picks, -7.0F));
  const auto status = on_device(std::vector<std::uint32_t>{0});
  const route_args args{.rule = params.rule,
                        .columns = params.columns(),
                        .top_k = params.top_k,
                        .logits = rows.get(),
                        .pitch_bytes = params.columns() * dtype_bytes(type),
                        .type = type,
                        .tokens_live = count.get(),
                        .tokens_cap = tokens,
                        .bias = bias.get(),
                        .expert_scale = scale.get(),
                        .table = table.get(),
                        .table_rows = layer.table_rows,
                        .token_ids = names.get(),
                        .ids = ids.get(),
                        .weights = weights.get(),
                        .status = status.get()};
  EXPECT_EQ(route_rows(args, size, nullptr).error, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {on_host(ids, picks), on_host(weights, picks), on_host(status, 1).front()};
}

// Both, over the same rows; rows that the host flags set the status.
void expect_host(const routing_params& params, const layer_routing& layer,
                 const std::vector<float>& logits, const device_size& size, dtype type = dtype::f32,
                 const std::vector<std::int32_t>& token_ids = {}) {
  ASSERT_TRUE(check_routing(params));
  ASSERT_TRUE(check_layer(params, layer));
  const auto tokens = static_cast<std::uint32_t>(logits.size() / params.columns());
  const std::vector<std::byte> bytes = as_type(logits, type);
  const std::size_t picks = std::size_t{tokens} * params.top_k;
  std::vector<std::int32_t> ids(picks);
  std::vector<float> weights(picks);
  std::vector<std::uint8_t> flags(tokens);
  const route_input input{.logits = bytes.data(),
                          .type = type,
                          .pitch_bytes = params.columns() * dtype_bytes(type),
                          .tokens = tokens,
                          .token_ids = token_ids};
  ASSERT_TRUE(route_flagging(params, layer, input, ids, weights, flags));
  const picked got = on_the_device(params, layer, bytes, type, tokens, tokens, token_ids, size);
  EXPECT_EQ(got.ids, ids);
  EXPECT_EQ(std::memcmp(got.weights.data(), weights.data(), picks * sizeof(float)), 0);
  const bool bad = std::find(flags.begin(), flags.end(), 1) != flags.end();
  EXPECT_EQ(got.status & 0xffu,
            bad ? static_cast<std::uint32_t>(device_failure::bad_router_row) : 0u);
  if (bad) {
    EXPECT_EQ(flags[got.status >> 8], 1);
  }
}

std::string name_of(const routing_params& params) {
  return std::string(routing_method_name(params.rule.method)) + " E " +
         std::to_string(params.columns()) + " k " + std::to_string(params.top_k) + " groups " +
         std::to_string(params.rule.groups);
}

class sm90_f32_route : public device_test {};

TEST_F(sm90_f32_route, equals_the_host_in_bits_for_every_method) {
  std::mt19937 random(21);
  for (const routing_shape& shape : routing_shapes()) {
    if (shape.params.columns() > k_route_columns_max) continue;
    SCOPED_TRACE(name_of(shape.params));
    const layer_routing layer = layer_of(shape, random);
    expect_host(shape.params, layer, rows_of(shape.params.columns(), 60, random), size);
  }
}

TEST_F(sm90_f32_route, equals_the_host_on_extreme_logits) {
  std::mt19937 random(22);
  for (const routing_shape& shape : routing_shapes()) {
    const std::uint32_t columns = shape.params.columns();
    if (columns > k_route_columns_max) continue;
    SCOPED_TRACE(name_of(shape.params));
    const layer_routing layer = layer_of(shape, random);
    // All equal, both zeros, huge, tiny, far apart, one alone.
    std::vector<float> logits(std::size_t{columns} * 6);
    for (std::uint32_t e = 0; e < columns; ++e) {
      const float sign = e % 2 == 0 ? 1.0F : -1.0F;
      logits[e] = 1.5F;
      logits[columns + e] = sign * 0.0F;
      logits[2 * columns + e] = sign * 3e38F / static_cast<float>(e + 1);
      logits[3 * columns + e] = sign * 0x1p-149F * static_cast<float>(e % 9);
      logits[4 * columns + e] = sign * static_cast<float>(e % 64) * 3.0F;
      logits[5 * columns + e] = e == columns / 2 ? 1.0F : -k_infinity;
    }
    expect_host(shape.params, layer, logits, size);
  }
}

TEST_F(sm90_f32_route, reads_bf16_and_f16) {
  std::mt19937 random(23);
  for (const dtype type : {dtype::bf16, dtype::f16}) {
    const routing_params params{
        .rule = {.method = routing_method::deepseek_v3, .groups = 8, .groups_kept = 4},
        .experts = 256,
        .top_k = 8};
    const layer_routing layer = layer_of({.params = params, .biased = true}, random);
    expect_host(params, layer, rows_of(256, 30, random), size, type);
  }
}

TEST_F(sm90_f32_route, chooses_by_token_id_where_the_layer_does) {
  std::mt19937 random(24);
  const routing_params params{
      .rule = {.method = routing_method::deepseek_v4, .scaling = 1.5F}, .experts = 64, .top_k = 3};
  const layer_routing layer = tabled({5, 9, 1, 63, 0, 31, 2, 3, 4}, 3);
  expect_host(params, layer, rows_of(64, 5, random), size, dtype::f32, {2, 0, 1, 3, -1});
}

TEST_F(sm90_f32_route, refuses_rows_that_are_not_finite_or_too_few_and_no_other) {
  std::mt19937 random(25);
  for (const routing_method method :
       {routing_method::renormalize, routing_method::deepseek_v3, routing_method::softmax_bias}) {
    for (const std::uint32_t bad : {0u, 7u, 39u}) {
      const routing_params params{.rule = {.method = method}, .experts = 40, .top_k = 4};
      std::vector<float> logits = rows_of(40, 9, random);
      logits[40 + bad] = std::nanf("");
      logits[4 * 40 + bad] = k_infinity;
      for (std::uint32_t e = 0; e < 37; ++e) logits[6 * 40 + e] = -k_infinity;
      expect_host(params, {}, logits, size);
    }
  }
}

TEST_F(sm90_f32_route, does_not_touch_rows_behind_the_live_ones) {
  std::mt19937 random(26);
  const routing_params params{
      .rule = {.method = routing_method::renormalize}, .experts = 16, .top_k = 2};
  std::vector<float> logits = rows_of(16, 4, random);
  logits[3 * 16] = std::nanf("");
  const picked got =
      on_the_device(params, {}, as_type(logits, dtype::f32), dtype::f32, 4, 3, {}, size);
  EXPECT_EQ(got.status, 0u);
  EXPECT_NE(got.ids[5], -7);
  EXPECT_EQ(got.ids[6], -7);
  EXPECT_EQ(got.weights[7], -7.0F);
}

}  // namespace
}  // namespace moetier::kernels::cuda
