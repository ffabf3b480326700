// Every format with every activation, with and without biases: cpu_ref against the fp64 oracle,
// cpu_avx2 against cpu_ref in bits (conformance items 14, 15, 16 of the MoE layer).
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu_capabilities.hpp"
#include "kernels/matrix_view.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

weight_format format_of(unsigned quant) { return {.quant = static_cast<quant_kind>(quant)}; }

std::string name_of(const expert_shape& s) {
  return std::string(quant_name(s.format.quant)) + " " +
         std::string(activation_name(s.activation)) + (s.bias ? " bias" : "") + " H " +
         std::to_string(s.hidden_size) + " I " + std::to_string(s.intermediate_size);
}

template <class Body>
void each_case(std::uint32_t hidden, std::uint32_t units, Body&& body) {
  for (unsigned quant = 0; quant < k_quant_kinds; ++quant) {
    if (!fits_groups(format_of(quant).quant, hidden) || !fits_groups(format_of(quant).quant, units))
      continue;
    for (unsigned kind = 0; kind < k_activation_kinds; ++kind) {
      for (const bool bias : {false, true})
        body(expert_shape{hidden, units, format_of(quant), static_cast<activation_kind>(kind),
                          bias});
    }
  }
}

std::vector<float> run_one(std::string_view name, const expert_shape& shape, const expert& e,
                           const std::vector<float>& x, unsigned threads = 1) {
  const auto backend = backend_of(name, shape, threads);
  if (backend == nullptr) return {};
  page_table pages(*backend);
  pages.add(e);
  return outputs_of(*backend, pages, 0, x);
}

TEST(conformance_16_bounds, cpu_ref_is_within_a_millionth_of_the_oracle_in_every_format) {
  std::mt19937 random(51);
  each_case(128, 128, [&](const expert_shape& shape) {
    const expert e = random_expert(shape, random);
    const std::vector<float> x = random_rows(2 * 128, random);
    const std::vector<float> y = run_one("cpu_ref", shape, e, x);
    ASSERT_EQ(y.size(), x.size());
    std::vector<double> truth(128);
    for (std::size_t r = 0; r < 2; ++r) {
      reference_expert(shape, e.tensors(), std::span(x).subspan(r * 128, 128), truth);
      double most = 0;
      for (const double t : truth) most = std::max(most, std::fabs(t));
      for (std::size_t n = 0; n < 128; ++n)
        ASSERT_NEAR(y[r * 128 + n], truth[n], 1e-6 * (1 + most)) << name_of(shape) << " row " << r;
    }
  });
}

TEST(conformance_16_bounds, the_oracle_as_a_backend_rounds_its_double_once) {
  std::mt19937 random(52);
  each_case(128, 128, [&](const expert_shape& shape) {
    const expert e = random_expert(shape, random);
    const std::vector<float> x = random_rows(128, random);
    const std::vector<float> y = run_one("reference", shape, e, x);
    std::vector<double> truth(128);
    reference_expert(shape, e.tensors(), x, truth);
    ASSERT_EQ(y.size(), truth.size());
    for (std::size_t n = 0; n < 128; ++n)
      ASSERT_EQ(y[n], static_cast<float>(truth[n])) << name_of(shape);
  });
}

void expect_equal_bits(std::uint32_t hidden, std::uint32_t units,
                       std::initializer_list<std::size_t> rows_tried, unsigned seed) {
  std::mt19937 random(seed);
  each_case(hidden, units, [&](const expert_shape& shape) {
    const expert e = random_expert(shape, random);
    for (const std::size_t rows : rows_tried) {
      const std::vector<float> x = random_rows(rows * hidden, random);
      const std::vector<float> truth = run_one("cpu_ref", shape, e, x);
      ASSERT_EQ(truth.size(), x.size());
      for (const unsigned threads : {1u, 3u})
        ASSERT_TRUE(equal_bits(run_one("cpu_avx2", shape, e, x, threads), truth))
            << name_of(shape) << " rows " << rows << " threads " << threads;
    }
  });
}

TEST(cpu_avx2, equals_cpu_ref_in_bits_for_every_format_and_activation) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  expect_equal_bits(128, 128, {1, 2, 3, 5, 6, 13}, 53);
}

TEST(cpu_avx2, equals_cpu_ref_in_bits_over_several_chunks_of_depth) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  expect_equal_bits(384, 128, {1, 8}, 54);
}

TEST(cpu_avx2, equals_cpu_ref_in_bits_for_sizes_that_are_no_multiple_of_a_panel) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  unsigned seed = 55;
  for (const auto& [hidden, units] :
       {std::pair{1u, 1u}, {3u, 17u}, {33u, 9u}, {131u, 37u}, {16u, 48u}, {96u, 32u}, {300u, 5u}})
    expect_equal_bits(hidden, units, {1, 4, 7}, seed++);
}

TEST(cpu_avx2, equals_cpu_ref_in_bits_with_rows_that_are_tiny_or_not_finite) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  std::mt19937 random(63);
  each_case(128, 128, [&](const expert_shape& shape) {
    const expert e = random_expert(shape, random);
    std::vector<float> x = random_rows(5 * 128, random);
    for (std::size_t i = 0; i < 128; ++i) {
      x[i] *= 1e-30F;
      x[128 + i] *= 0x1p-126F;
    }
    const std::vector<float> truth = run_one("cpu_ref", shape, e, x);
    ASSERT_TRUE(equal_bits(run_one("cpu_avx2", shape, e, x), truth)) << name_of(shape);
    x[3 * 128 + 5] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> spoiled = run_one("cpu_avx2", shape, e, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i / 128 == 3)
        ASSERT_TRUE(std::isnan(spoiled[i])) << name_of(shape);
      else
        ASSERT_EQ(spoiled[i], truth[i]) << name_of(shape);
    }
  });
}

// One expert whose weights pass every code through one column: with x = a unit vector, H = number
// of codes, the up product is the weight itself.
TEST(conformance_14_weights, every_code_of_every_format_has_the_value_that_it_stands_for) {
  std::mt19937 random(56);
  for (const std::string_view name : {"cpu_ref", "cpu_avx2"}) {
    if (!runs_here(name)) continue;
    for (unsigned quant = 1; quant < k_quant_kinds; ++quant) {
      // relu without a gate: y = down * max(up x, 0); down is the identity in f32 terms only where
      // the format holds 1, so compare with cpu_ref's chain written out on matrix_view.
      const expert_shape shape{256, 128, format_of(quant), activation_kind::relu, false};
      expert e = random_expert(shape, random);
      const std::size_t codes = matrix_form_of(shape.format, 128, 256).codes_bytes;
      for (std::size_t i = 0; i < codes; ++i) {
        auto code = static_cast<std::uint8_t>(i * 7 + i / 256);
        if (!is_four_bit(shape.format.quant) && is_e4m3_nan(code)) code = 0;
        e.up[i] = std::byte{code};
      }
      const matrix_view up(shape.format, e.up, 128, 256);
      const matrix_view down(shape.format, e.down, 256, 128);
      const auto backend = backend_of(name, shape);
      page_table pages(*backend);
      pages.add(e);
      for (const std::size_t k : {0u, 1u, 100u, 255u}) {
        std::vector<float> x(256);
        x[k] = 1.0F;
        const std::vector<float> y = outputs_of(*backend, pages, 0, x);
        for (std::size_t n = 0; n < 256; ++n) {
          float sum = 0;
          for (std::size_t i = 0; i < 128; ++i)
            sum = std::fma(std::max(0.0F, up.value(i, k)), down.value(n, i), sum);
          ASSERT_EQ(y[n], sum) << name << " " << quant_name(shape.format.quant) << " k " << k;
        }
      }
    }
  }
}

TEST(conformance_14_weights, every_scale_of_ue8m0_multiplies_exactly) {
  std::mt19937 random(57);
  for (const std::string_view name : {"cpu_ref", "cpu_avx2"}) {
    if (!runs_here(name)) continue;
    for (const quant_kind quant : {quant_kind::mxfp4, quant_kind::mxfp8}) {
      const expert_shape shape{32, 256, {.quant = quant}, activation_kind::relu, false};
      expert e = random_expert(shape, random);
      const matrix_form form = matrix_form_of(shape.format, 256, 32);
      // No infinities: the largest scales get codes of 1 and 0.5.
      const std::size_t row_bytes = form.codes_bytes / 256;
      const auto small = quant == quant_kind::mxfp4 ? std::byte{0x11} : std::byte{0x38};
      std::fill(e.up.begin() + static_cast<std::ptrdiff_t>(245 * row_bytes),
                e.up.begin() + static_cast<std::ptrdiff_t>(256 * row_bytes), small);
      for (std::size_t r = 0; r < 256; ++r)
        e.up[form.scales_offset + r] = std::byte{static_cast<std::uint8_t>(r == 255 ? 0 : r)};
      const matrix_view up(shape.format, e.up, 256, 32);
      const matrix_view down(shape.format, e.down, 32, 256);
      const auto backend = backend_of(name, shape);
      page_table pages(*backend);
      pages.add(e);
      for (std::size_t k = 0; k < 32; ++k) {
        std::vector<float> x(32);
        x[k] = 1.0F;
        const std::vector<float> y = outputs_of(*backend, pages, 0, x);
        for (std::size_t n = 0; n < 32; ++n) {
          float sum = 0;
          for (std::size_t i = 0; i < 256; ++i)
            sum = std::fma(std::max(0.0F, up.value(i, k)), down.value(n, i), sum);
          if (std::isnan(sum))
            ASSERT_TRUE(std::isnan(y[n]));
          else
            ASSERT_EQ(y[n], sum) << name << " " << quant_name(quant) << " k " << k;
        }
      }
    }
  }
}

TEST(conformance_14_weights, the_low_nibble_is_the_even_column) {
  for (const quant_kind quant : {quant_kind::mxfp4, quant_kind::nvfp4, quant_kind::int4_g128}) {
    std::vector<std::byte> bytes(matrix_form_of({.quant = quant}, 1, 128).bytes);
    bytes[0] = std::byte{0x52};  // column 0: code 2, column 1: code 5
    const matrix_view view({.quant = quant}, bytes, 1, 128);
    EXPECT_EQ(view.code(0, 0), 2);
    EXPECT_EQ(view.code(0, 1), 5);
  }
}

TEST(conformance_14_weights, nvfp4_rounds_the_product_with_its_second_scale_once) {
  std::vector<std::byte> bytes(matrix_form_of({.quant = quant_kind::nvfp4}, 1, 16).bytes);
  const matrix_form form = matrix_form_of({.quant = quant_kind::nvfp4}, 1, 16);
  bytes[0] = std::byte{0x07};                   // 6
  bytes[form.scales_offset] = std::byte{0x3d};  // 1.625
  const float second = 0x1.fffffep-3F;
  std::memcpy(&bytes[form.second_offset], &second, sizeof second);
  EXPECT_EQ(matrix_view({.quant = quant_kind::nvfp4}, bytes, 1, 16).value(0, 0), 9.75F * second);
}

}  // namespace
}  // namespace moetier::kernels
