#include "actors/cli/device_rows.hpp"

#include <algorithm>
#include <cmath>

namespace moetier::cli {
namespace {

constexpr double k_read_bytes_per_us = 4.5e6;
constexpr double k_bf16_flops_per_us = 790e6;
constexpr double k_fp8_flops_per_us = 1500e6;

constexpr device_shape k_shapes[] = {
    {"dsv3_ep8", 7168, 2048, 32, 1},
    {"qwen3", 2048, 768, 128, 8},
    {"mixtral", 4096, 14336, 8, 2},
    {"gpt_oss", 2880, 2880, 128, 4, true},
};
constexpr const device_shape* k_dsv3 = &k_shapes[0];
constexpr const device_shape* k_qwen3 = &k_shapes[1];
constexpr const device_shape* k_mixtral = &k_shapes[2];
constexpr const device_shape* k_gpt_oss = &k_shapes[3];

constexpr auto k_fp8 = quant_kind::fp8_block;
constexpr auto k_bf16 = quant_kind::none;
constexpr auto k_random = routing_kind::random;
constexpr auto k_equal = routing_kind::equal;

constexpr device_row k_rows[] = {
    {k_dsv3, k_fp8, 1, k_random, {.us = 20}},
    {k_dsv3, k_fp8, 8, k_random, {.us = 80}},
    {k_dsv3, k_fp8, 64, k_random, {.of_probe = 1.01}},
    {k_dsv3, k_fp8, 256, k_random, {.of_probe = 1.015}},
    {k_dsv3, k_fp8, 256, k_equal},
    {k_dsv3, k_fp8, 1024, k_random, {.of_probe = 1.075}},
    {k_dsv3, k_fp8, 1024, k_equal},
    {k_dsv3, k_fp8, 4096, k_random, {.us = 480}},
    {k_dsv3, k_fp8, 4096, k_equal, {.us = 425}},
    {k_dsv3, k_fp8, 16384, k_random, {.us = 1239}},
    {k_dsv3, k_fp8, 16384, k_equal, {.us = 1239}},
    {k_dsv3, k_bf16, 8, k_random, {.us = 160}},
    {k_dsv3, k_bf16, 256, k_random, {.us = 660}},
    {k_dsv3, k_bf16, 4096, k_random, {.us = 850}},
    {k_qwen3, k_fp8, 1, k_random, {.us = 17}},
    {k_qwen3, k_fp8, 8, k_random, {.us = 64}},
    {k_qwen3, k_fp8, 64, k_random, {.us = 146}},
    {k_qwen3, k_fp8, 1024, k_random, {.us = 185}},
    {k_qwen3, k_fp8, 16384, k_random, {.us = 1350}},
    {k_qwen3, k_bf16, 1, k_random, {.us = 25}},
    {k_qwen3, k_bf16, 8, k_random, {.us = 118}},
    {k_qwen3, k_bf16, 64, k_random, {.us = 280}},
    {k_qwen3, k_bf16, 1024, k_random, {.us = 345}},
    {k_qwen3, k_bf16, 16384, k_random, {.us = 2200}},
    {k_mixtral, k_bf16, 1, k_random, {.us = 172}},
    {k_mixtral, k_bf16, 64, k_random, {.us = 645}},
    {k_mixtral, k_bf16, 1024, k_random, {.us = 1200}},
    {k_mixtral, k_bf16, 4096, k_random, {.us = 4800}},
    {k_gpt_oss, k_bf16, 64, k_random, {.us = 1340}},
    {k_gpt_oss, k_bf16, 1024, k_random, {.us = 1550}},
};

constexpr double weights_of(const device_shape& s) {
  return 3.0 * s.hidden_size * s.intermediate_size;
}

}  // namespace

std::span<const device_shape> device_shapes() noexcept { return k_shapes; }
std::span<const device_row> device_rows() noexcept { return k_rows; }

std::string_view device_format_name(quant_kind quant) noexcept {
  return quant == quant_kind::none ? "bf16" : quant_name(quant);
}

kernels::expert_shape expert_shape_of(const device_shape& shape, quant_kind quant) noexcept {
  return {.hidden_size = shape.hidden_size,
          .intermediate_size = shape.intermediate_size,
          .format = {.quant = quant},
          .activation = shape.bias ? activation_kind::swiglu_bias : activation_kind::swiglu,
          .bias = shape.bias};
}

double expert_bytes(const device_shape& shape, quant_kind quant) noexcept {
  // One f32 scale for 128 x 128 codes.
  return weights_of(shape) * (quant == k_fp8 ? 1.0 + 4.0 / (128 * 128) : 2.0);
}

double expected_active(const device_shape& shape, std::uint32_t tokens) noexcept {
  return shape.slots * (1.0 - std::pow(1.0 - double{1} * shape.k / shape.slots, tokens));
}

double floor_us(const device_shape& shape, quant_kind quant, std::uint32_t tokens,
                double active) noexcept {
  const bool fp8 = quant == k_fp8;
  const double elements = double{1} * tokens * shape.hidden_size;
  // Rows in as the products read them: codes and a scale for 128 of them, or bf16. Rows out: bf16.
  const double rows = elements * (fp8 ? 1.0 + 4.0 / 128 : 2.0) + elements * 2.0;
  const double read = (active * expert_bytes(shape, quant) + rows) / k_read_bytes_per_us;
  const double computed =
      layer_flops(shape, tokens) / (fp8 ? k_fp8_flops_per_us : k_bf16_flops_per_us);
  return std::max(read, computed);
}

double layer_flops(const device_shape& shape, std::uint32_t tokens) noexcept {
  return 2.0 * weights_of(shape) * tokens * shape.k;
}

std::uint32_t routings_of(std::uint32_t tokens) noexcept { return tokens <= 512 ? 8 : 2; }

std::uint32_t layers_of_graph(const device_shape& shape, quant_kind quant,
                              std::uint32_t tokens) noexcept {
  constexpr double k_graph_bytes = 6.0 * (1U << 30);
  const double read = expected_active(shape, tokens) * weights_of(shape) * (quant == k_fp8 ? 1 : 2);
  return static_cast<std::uint32_t>(std::clamp(k_graph_bytes / read, 2.0, 16.0));
}

}  // namespace moetier::cli
