// Where each weight lies in a page, word by word.
#include "kernels/cpu/panel_page.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/matrix_view.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

// The word-by-word reading of panel_page.hpp's table.
float page_value(const expert_shape& shape, const aligned_bytes& bytes, const panel_strip& strip,
                 std::size_t panel, std::size_t k, std::size_t column) {
  const std::byte* at = bytes.data() + strip.offset_bytes + panel * strip.panel_bytes;
  const auto get = [](const std::byte* from, auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const std::byte* step = at + k * strip.step_bytes;
  const quant_kind quant = shape.format.quant;
  if (quant == quant_kind::none) {
    if (shape.format.stored != dtype::bf16) return get(step + 4 * column, 0.0F);
    const auto word = get(step + 4 * (column % 8), std::uint32_t{0});
    return f32_from_bf16(static_cast<std::uint16_t>(column >= 8 ? word >> 16 : word));
  }
  const std::byte* scales = at + strip.scales_bytes;
  const std::size_t group =
      group_columns(quant) == 0 ? column : k / group_columns(quant) * 16 + column;
  const std::size_t place = is_four_bit(quant)
                                ? k / 4 * 32 + column % 8 / 4 * 16 + k % 4 * 4 + column % 4
                                : k / 2 * 32 + column * 2 + k % 2;
  std::uint8_t code = get(at + place, std::uint8_t{0});
  if (is_four_bit(quant)) code = static_cast<std::uint8_t>(column >= 8 ? code >> 4 : code & 15);
  switch (quant) {
    case quant_kind::mxfp8:
      return f32_from_e4m3(code) * f32_from_ue8m0(get(scales + group, std::uint8_t{0}));
    case quant_kind::mxfp4:
      return f32_from_e2m1(code) * f32_from_ue8m0(get(scales + group, std::uint8_t{0}));
    case quant_kind::nvfp4:
      return f32_from_e2m1(code) * f32_from_e4m3(get(scales + 64 + group, std::uint8_t{0})) *
             get(scales + 4 * column, 0.0F);
    case quant_kind::int4_g128:
      return f32_from_int4(code) * f32_from_bf16(get(scales + 2 * group, std::uint16_t{0}));
    default: return f32_from_e4m3(code) * get(scales + 4 * group, 0.0F);
  }
}

float value_or_zero(const matrix_view& matrix, std::size_t row, std::size_t k) {
  return row < matrix.out() ? matrix.value(row, k) : 0.0F;
}

void expect_page_of(const expert_shape& shape, const expert& e) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  const bool gated = is_gated(shape.activation);
  const panel_page page(shape);
  aligned_bytes bytes(page.bytes());
  page.pack(e.tensors(), bytes.span());
  const matrix_view up(shape.format, e.up, units, hidden);
  const matrix_view gate(shape.format, gated ? e.gate : e.up, units, hidden);
  const matrix_view down(shape.format, e.down, hidden, units);
  ASSERT_EQ(page.fc1().panels, gated ? (units + 7) / 8 : (units + 15) / 16);
  ASSERT_EQ(page.fc2().panels, (hidden + 15) / 16);
  const auto* bias1 = reinterpret_cast<const float*>(bytes.data() + page.fc1().bias_bytes);
  const auto* bias2 = reinterpret_cast<const float*>(bytes.data() + page.fc2().bias_bytes);
  for (std::size_t p = 0; p < page.fc1().panels; ++p) {
    for (std::size_t column = 0; column < 16; ++column) {
      const bool high = gated && column >= 8;
      const std::size_t unit = gated ? p * 8 + column % 8 : p * 16 + column;
      for (std::size_t k = 0; k < hidden; ++k)
        ASSERT_EQ(page_value(shape, bytes, page.fc1(), p, k, column),
                  value_or_zero(high || !gated ? up : gate, unit, k));
      if (shape.bias) {
        const std::vector<float>& given = high || !gated ? e.up_bias : e.gate_bias;
        ASSERT_EQ(bias1[p * 16 + column], unit < units ? given[unit] : 0.0F);
      }
    }
  }
  for (std::size_t p = 0; p < page.fc2().panels; ++p) {
    for (std::size_t column = 0; column < 16; ++column) {
      for (std::size_t k = 0; k < units; ++k)
        ASSERT_EQ(page_value(shape, bytes, page.fc2(), p, k, column),
                  value_or_zero(down, p * 16 + column, k));
      if (shape.bias) {
        ASSERT_EQ(bias2[p * 16 + column],
                  p * 16 + column < hidden ? e.down_bias[p * 16 + column] : 0.0F);
      }
    }
  }
  activation_constants constants;
  std::memcpy(&constants, bytes.data() + page.constants_offset(), sizeof constants);
  EXPECT_EQ(constants.alpha, e.constants.alpha);
  EXPECT_EQ(constants.beta, e.constants.beta);
  EXPECT_EQ(constants.limit,
            e.constants.limit > 0 ? e.constants.limit : std::numeric_limits<float>::infinity());
}

TEST(panel_page, pairs_gates_with_ups_and_columns_with_columns_eight_further) {
  std::mt19937 random(31);
  for (const auto& [hidden, units] : {std::pair{1u, 1u}, {16u, 8u}, {37u, 21u}, {20u, 9u}}) {
    for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
      const expert_shape shape{
          .hidden_size = hidden, .intermediate_size = units, .format = {.stored = stored}};
      expect_page_of(shape, random_expert(shape, random));
    }
  }
}

TEST(panel_page, holds_sixteen_neighbouring_units_where_there_is_no_gate_and_biases_and_constants) {
  std::mt19937 random(33);
  for (const activation_kind kind : {activation_kind::relu2, activation_kind::swiglu_bias}) {
    for (const auto& [hidden, units] : {std::pair{1u, 1u}, {37u, 21u}, {16u, 32u}}) {
      const expert_shape shape{
          .hidden_size = hidden, .intermediate_size = units, .activation = kind, .bias = true};
      expect_page_of(shape, random_expert(shape, random));
    }
  }
}

TEST(panel_page, keeps_codes_and_scales_of_every_quantised_format) {
  std::mt19937 random(34);
  for (unsigned quant = 1; quant < k_quant_kinds; ++quant) {
    for (const activation_kind kind : {activation_kind::swiglu, activation_kind::silu}) {
      for (const auto& [hidden, units] : {std::pair{128u, 128u}, {384u, 256u}}) {
        const expert_shape shape{.hidden_size = hidden,
                                 .intermediate_size = units,
                                 .format = {.quant = static_cast<quant_kind>(quant)},
                                 .activation = kind};
        expect_page_of(shape, random_expert(shape, random));
      }
    }
  }
  const expert_shape odd{
      .hidden_size = 131, .intermediate_size = 37, .format = {.quant = quant_kind::fp8_block}};
  expect_page_of(odd, random_expert(odd, random));
}

TEST(panel_page, has_the_size_of_the_weights_where_the_shape_fits_whole_panels) {
  EXPECT_EQ(panel_page({.hidden_size = 2048, .intermediate_size = 768}).bytes(),
            std::size_t{3} * 2048 * 768 * 2 + 64);
  EXPECT_EQ(
      panel_page({.hidden_size = 64, .intermediate_size = 16, .format = {.stored = dtype::f16}})
          .bytes(),
      std::size_t{3} * 64 * 16 * 4 + 64);
}

TEST(panel_page, is_the_same_for_equal_values_stored_as_f16_and_as_f32) {
  const expert_shape half{
      .hidden_size = 19, .intermediate_size = 11, .format = {.stored = dtype::f16}};
  expert_shape full = half;
  full.format.stored = dtype::f32;
  std::mt19937 random(32);
  const expert e = random_expert(half, random);
  const auto widened = [](const std::vector<std::byte>& tensor) {
    std::vector<std::byte> out(2 * tensor.size());
    for (std::size_t i = 0; i < tensor.size() / 2; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, &tensor[2 * i], 2);
      const float value = f32_from_f16(bits);
      std::memcpy(&out[4 * i], &value, 4);
    }
    return out;
  };
  expert wide;
  wide.gate = widened(e.gate);
  wide.up = widened(e.up);
  wide.down = widened(e.down);
  const panel_page a(half);
  const panel_page b(full);
  ASSERT_EQ(a.layout_id(), b.layout_id());
  ASSERT_EQ(a.bytes(), b.bytes());
  aligned_bytes in_half(a.bytes());
  aligned_bytes in_full(b.bytes());
  a.pack(e.tensors(), in_half.span());
  b.pack(wide.tensors(), in_full.span());
  EXPECT_EQ(std::memcmp(in_half.data(), in_full.data(), a.bytes()), 0);
}

}  // namespace
}  // namespace moetier::kernels
