// Matrix quantisers: their scales, their rounding, their bounds; the row quantiser bit by bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/matrix_view.hpp"
#include "kernels/quant/row_quantiser.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float k_infinity = std::numeric_limits<float>::infinity();

std::vector<float> matrix_of(std::uint32_t out, std::uint32_t in, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values = random_rows(std::size_t{out} * in, random);
  for (float& value : values) value *= scale;
  return values;
}

TEST(a_matrix_quantiser, reports_the_error_that_its_bytes_have) {
  const std::vector<float> values = matrix_of(40, 256, 0.02F, 91);
  for (unsigned quant = 0; quant < k_quant_kinds; ++quant) {
    const weight_format to{.quant = static_cast<quant_kind>(quant)};
    const auto made = quantise_matrix(to, values, 40, 256);
    ASSERT_TRUE(made);
    const matrix_view view(to, made->bytes, 40, 256);
    double most = 0, squares = 0, differences = 0;
    for (std::size_t r = 0; r < 40; ++r) {
      for (std::size_t c = 0; c < 256; ++c) {
        const double given = values[r * 256 + c];
        const double d = double{view.value(r, c)} - given;
        most = std::max(most, std::fabs(d));
        squares += given * given;
        differences += d * d;
      }
    }
    EXPECT_DOUBLE_EQ(made->error.max_abs, most);
    EXPECT_NEAR(made->error.rms_relative, std::sqrt(differences / squares), 1e-12);
  }
}

TEST(a_matrix_quantiser, keeps_the_noise_of_its_format) {
  const std::vector<float> values = matrix_of(256, 512, 0.02F, 92);
  const auto noise = [&](quant_kind quant) {
    return quantise_matrix({.quant = quant}, values, 256, 512)->error.rms_relative;
  };
  EXPECT_LE(noise(quant_kind::none), 0.003);
  for (const quant_kind quant :
       {quant_kind::fp8_tensor, quant_kind::fp8_block, quant_kind::mxfp8}) {
    EXPECT_LE(noise(quant), 0.03) << quant_name(quant);
    EXPECT_GE(noise(quant), 0.02) << quant_name(quant);
  }
  EXPECT_LE(noise(quant_kind::mxfp4), 0.15);
  EXPECT_LE(noise(quant_kind::nvfp4), 0.11);
  EXPECT_LE(noise(quant_kind::int4_g128), 0.15);
}

TEST(a_matrix_quantiser, is_exact_where_every_value_is_a_code_under_its_scale) {
  std::mt19937 random(93);
  for (unsigned quant = 1; quant < k_quant_kinds; ++quant) {
    const weight_format to{.quant = static_cast<quant_kind>(quant)};
    const std::vector<std::byte> bytes = random_matrix(to, 128, 256, random);
    const matrix_view view(to, bytes, 128, 256);
    std::vector<float> values;
    for (std::size_t r = 0; r < 128; ++r) {
      for (std::size_t c = 0; c < 256; ++c) values.push_back(view.value(r, c));
    }
    if (to.quant == quant_kind::nvfp4) continue;  // its s2 comes from another maximum
    const auto again = quantise_matrix(to, values, 128, 256);
    ASSERT_TRUE(again);
    EXPECT_LE(again->error.rms_relative, 3e-3) << quant_name(to.quant);
  }
}

TEST(a_matrix_quantiser, gives_groups_of_zeros_scale_one_and_zero_values) {
  const std::vector<float> zeros(128 * 256, 0.0F);
  for (unsigned quant = 1; quant < k_quant_kinds; ++quant) {
    const weight_format to{.quant = static_cast<quant_kind>(quant)};
    const auto made = quantise_matrix(to, zeros, 128, 256);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->error.max_abs, 0.0);
    const matrix_view view(to, made->bytes, 128, 256);
    for (std::size_t c = 0; c < 256; ++c) EXPECT_EQ(view.value(5, c), 0.0F);
    switch (to.quant) {
      case quant_kind::fp8_tensor:
      case quant_kind::fp8_block:
        EXPECT_EQ(std::bit_cast<float>(view.scale_bits(5, 0)), 1.0F);
        break;
      case quant_kind::int4_g128:
        EXPECT_EQ(f32_from_bf16(static_cast<std::uint16_t>(view.scale_bits(5, 0))), 1.0F);
        EXPECT_EQ(view.code(5, 3), 8);
        break;
      case quant_kind::nvfp4:
        EXPECT_EQ(f32_from_e4m3(static_cast<std::uint8_t>(view.scale_bits(5, 0))), 1.0F);
        EXPECT_EQ(view.second_scale(), 1.0F);
        break;
      default: EXPECT_EQ(view.scale_bits(5, 0), 127u);
    }
  }
}

TEST(a_matrix_quantiser, chooses_the_scales_of_the_page) {
  std::vector<float> values(128 * 256, 0.5F);
  values[0] = 448.0F;     // block (0, 0), group 0
  values[130] = -3.0F;    // block (0, 1)
  values[256] = 6.0001F;  // row 1, group 0
  const auto block = quantise_matrix({.quant = quant_kind::fp8_block}, values, 128, 256);
  const matrix_view b({.quant = quant_kind::fp8_block}, block->bytes, 128, 256);
  EXPECT_EQ(std::bit_cast<float>(b.scale_bits(0, 0)), 1.0F);
  EXPECT_EQ(std::bit_cast<float>(b.scale_bits(100, 1)), 3.0F / 448.0F);
  const auto mx = quantise_matrix({.quant = quant_kind::mxfp4}, values, 128, 256);
  const matrix_view m({.quant = quant_kind::mxfp4}, mx->bytes, 128, 256);
  EXPECT_EQ(m.scale_bits(1, 0), 128u);  // the smallest power of two not below 6.0001 / 6
  EXPECT_EQ(m.scale_bits(2, 0), 124u);  // 1/8 is the first not below 0.5 / 6
  const auto int4 = quantise_matrix({.quant = quant_kind::int4_g128}, values, 128, 256);
  const matrix_view i({.quant = quant_kind::int4_g128}, int4->bytes, 128, 256);
  EXPECT_EQ(i.scale_bits(2, 0), bf16_from_f32(0.5F / 7));
  EXPECT_EQ(i.code(2, 0), 15);
  const auto tensor = quantise_matrix({.quant = quant_kind::fp8_tensor}, values, 128, 256);
  const matrix_view t({.quant = quant_kind::fp8_tensor}, tensor->bytes, 128, 256);
  for (std::size_t r = 0; r < 128; ++r) EXPECT_EQ(std::bit_cast<float>(t.scale_bits(r, 0)), 1.0F);
}

TEST(a_matrix_quantiser, refuses_what_is_not_finite_and_sizes_that_split_a_group) {
  std::vector<float> values(2 * 128, 1.0F);
  values[128 + 7] = k_nan;
  const auto bad = quantise_matrix({.quant = quant_kind::mxfp4}, values, 2, 128);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().why, reason::weight_mismatch);
  EXPECT_NE(bad.error().text.find("weight at [1, 7]"), std::string::npos) << bad.error().text;
  const auto split = quantise_matrix({.quant = quant_kind::int4_g128}, values, 4, 64);
  ASSERT_FALSE(split);
  EXPECT_EQ(split.error().why, reason::invalid_shape);
}

TEST(a_matrix_quantiser, reads_unquantised_canonical_bytes) {
  std::mt19937 random(94);
  for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
    const weight_format from{.stored = stored};
    const std::vector<std::byte> bytes = random_matrix(from, 3, 128, random);
    const matrix_view view(from, bytes, 3, 128);
    std::vector<float> values;
    for (std::size_t i = 0; i < 3 * 128; ++i) values.push_back(view.value(i / 128, i % 128));
    const weight_format to{.quant = quant_kind::fp8_block};
    EXPECT_EQ(quantise_matrix(to, from, bytes, 3, 128)->bytes,
              quantise_matrix(to, values, 3, 128)->bytes);
  }
}

struct quantised_row {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
};

quantised_row row_by(quantise_row_fn quantise, const std::vector<float>& row) {
  quantised_row q{std::vector<std::uint8_t>(row.size() + 1, 0xaa),
                  std::vector<float>((row.size() + 127) / 128 + 1, -7.0F)};
  quantise(row.data(), row.size(), q.codes.data(), q.scales.data());
  EXPECT_EQ(q.codes.back(), 0xaa);
  EXPECT_EQ(q.scales.back(), -7.0F);
  return q;
}

TEST(the_row_quantiser, follows_its_rule_for_each_block) {
  std::vector<float> row(3 * 128, 0.0F);
  row[0] = 896.0F;
  row[1] = -1.0F;
  row[128] = 0x1p-140F;  // a subnormal block: the floor of the scale
  row[256] = -0.0F;
  const quantised_row q = row_by(quantise_row, row);
  EXPECT_EQ(q.scales[0], 2.0F);
  EXPECT_EQ(q.codes[0], 0x7e);
  EXPECT_EQ(q.codes[1], e4m3_from_f32(-0.5F));
  EXPECT_EQ(q.scales[1], 0x1p-126F);
  EXPECT_EQ(q.codes[128], 0);
  EXPECT_EQ(q.scales[2], 1.0F);
  EXPECT_EQ(q.codes[256], 0);
}

TEST(the_row_quantiser, keeps_nan_and_infinity_to_their_block) {
  for (const float bad : {k_nan, k_infinity, -k_infinity}) {
    std::vector<float> row(256, 1.0F);
    row[200] = bad;
    const quantised_row q = row_by(quantise_row, row);
    EXPECT_EQ(q.scales[0], 1.0F / 448.0F);
    EXPECT_EQ(q.codes[5], 0x7e);
    EXPECT_TRUE(std::isnan(q.scales[1]));
    for (std::size_t i = 128; i < 256; ++i) EXPECT_EQ(q.codes[i], 0x7f);
  }
}

TEST(the_row_quantiser, is_within_half_a_step_of_its_input) {
  const std::vector<float> row = matrix_of(1, 1280, 3.0F, 95);
  const quantised_row q = row_by(quantise_row, row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float scale = q.scales[i / 128];
    EXPECT_NEAR(f32_from_e4m3(q.codes[i]) * scale, row[i],
                std::max(std::fabs(row[i]) / 16 * 1.00001F, scale * 0x1p-10F * 1.00001F));
  }
}

TEST(the_row_quantiser, is_equal_in_bits_in_both_forms) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  EXPECT_EQ(pick_row_quantiser({}), &quantise_row);
  const quantise_row_fn fast = pick_row_quantiser(detect_cpu_features());
  ASSERT_NE(fast, &quantise_row);
  std::mt19937 random(96);
  for (int round = 0; round < 400; ++round) {
    const std::size_t columns = 1 + random() % 700;
    std::vector<float> row(columns);
    const int exponent = static_cast<int>(random() % 260) - 140;
    for (float& x : row) {
      const auto bits = static_cast<std::uint32_t>(random());
      x = round % 4 == 0
              ? std::bit_cast<float>(bits)
              : std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F,
                           exponent);
      if (round % 4 == 1) x = std::bit_cast<float>(bits & 0x803fffffu);  // subnormals
    }
    const quantised_row a = row_by(quantise_row, row);
    const quantised_row b = row_by(fast, row);
    ASSERT_EQ(a.codes, b.codes) << "round " << round << " columns " << columns;
    for (std::size_t s = 0; s < a.scales.size(); ++s)
      ASSERT_TRUE(a.scales[s] == b.scales[s] ||
                  (std::isnan(a.scales[s]) && std::isnan(b.scales[s])));
  }
}

}  // namespace
}  // namespace moetier::kernels
