// The router's product: against double, both forms in bits, rows independent of each other.
#include "kernels/routing/router_logits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/backend.hpp"

namespace moetier::kernels {
namespace {

struct router_case {
  router_case(dtype stored, std::uint32_t columns, std::uint32_t width, std::uint32_t tokens,
              unsigned seed)
      : type(stored),
        x(std::size_t{tokens} * width),
        wide(std::size_t{columns} * width),
        bytes(wide.size() * dtype_bytes(stored)),
        bias(columns) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(random);
    for (float& b : bias) b = normal(random);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const float v = 0.05F * normal(random);
      if (stored == dtype::f32) {
        wide[i] = v;
        std::memcpy(&bytes[i * 4], &v, 4);
        continue;
      }
      const std::uint16_t bits = stored == dtype::bf16 ? bf16_from_f32(v) : f16_from_f32(v);
      wide[i] = stored == dtype::bf16 ? f32_from_bf16(bits) : f32_from_f16(bits);
      std::memcpy(&bytes[i * 2], &bits, 2);
    }
    matrix = {.weights = bytes.data(),
              .type = stored,
              .columns = columns,
              .width = width,
              .bias = bias.data()};
  }

  std::vector<float> on(const router_dots& dots) const {
    const std::size_t tokens = x.size() / matrix.width;
    std::vector<float> out(tokens * matrix.columns);
    router_logits_on(dots, matrix, x.data(), matrix.width * 4, static_cast<std::uint32_t>(tokens),
                     out.data(), matrix.columns * 4);
    return out;
  }

  dtype type;
  std::vector<float> x, wide;
  std::vector<std::byte> bytes;
  std::vector<float> bias;
  router_matrix matrix;
};

bool wide_here() {
  const cpu_features features = detect_cpu_features();
  return features.avx2 && features.fma;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(router_logits, are_the_product_in_double_and_equal_in_both_forms) {
  for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32}) {
    for (const std::uint32_t width : {1U, 7U, 31U, 32U, 33U, 200U, 1024U}) {
      for (const std::uint32_t columns : {1U, 2U, 5U, 64U}) {
        const router_case c(type, columns, width, 3, width + columns);
        const std::vector<float> out = c.on(k_router_dots_scalar);
        if (wide_here()) {
          EXPECT_TRUE(same_bits(out, c.on(k_router_dots_avx2)))
              << dtype_name(type) << " " << width << " " << columns;
        }
        for (std::size_t t = 0; t < 3; ++t) {
          for (std::size_t e = 0; e < columns; ++e) {
            double truth = double{c.bias[e]};
            for (std::size_t i = 0; i < width; ++i)
              truth += double{c.x[t * width + i]} * double{c.wide[e * width + i]};
            ASSERT_NEAR(out[t * columns + e], truth, 2e-6);
          }
        }
      }
    }
  }
}

TEST(router_logits, of_a_row_depend_on_no_other_row) {
  const router_case all(dtype::bf16, 31, 130, 9, 5);
  const std::vector<float> out = all.on(k_router_dots_scalar);
  for (std::size_t t = 0; t < 9; ++t) {
    std::vector<float> one(31, 7.0F);
    router_logits(all.matrix, all.x.data() + t * 130, 0, 1, one.data(), 0);
    EXPECT_EQ(one, std::vector<float>(out.begin() + static_cast<std::ptrdiff_t>(t * 31),
                                      out.begin() + static_cast<std::ptrdiff_t>(t * 31 + 31)));
  }
}

TEST(router_logits, follow_the_pitches_and_go_without_a_bias) {
  router_case c(dtype::f32, 3, 4, 2, 6);
  const std::vector<float> with = c.on(k_router_dots_scalar);
  c.matrix.bias = nullptr;
  std::vector<float> x(2 * 6, std::numeric_limits<float>::quiet_NaN());
  std::copy_n(c.x.begin(), 4, x.begin());
  std::copy_n(c.x.begin() + 4, 4, x.begin() + 6);
  std::vector<float> out(2 * 5, 9.0F);
  router_logits(c.matrix, x.data(), 24, 2, out.data(), 20);
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t e = 0; e < 3; ++e) EXPECT_EQ(out[t * 5 + e] + c.bias[e], with[t * 3 + e]);
    EXPECT_EQ(out[t * 5 + 3], 9.0F);
  }
}

TEST(router_logits, widen_every_f16_exactly_in_both_forms) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  const float one = 1.0F;
  for (const router_dots* dots : {&k_router_dots_scalar, &k_router_dots_avx2}) {
    if (dots == &k_router_dots_avx2 && !wide_here()) continue;
    std::vector<float> out(bits.size());
    router_logits_on(
        *dots,
        {.weights = bits.data(), .type = dtype::f16, .columns = 65536, .width = 1, .bias = nullptr},
        &one, 4, 1, out.data(), 0);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float truth = f32_from_f16(bits[i]);
      ASSERT_TRUE(out[i] == truth || (std::isnan(out[i]) && std::isnan(truth))) << i;
    }
  }
}

}  // namespace
}  // namespace moetier::kernels
