#include "transport/client/source/row_arithmetic.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace moetier::client {
namespace {

std::vector<float> odd_values(std::size_t n, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<float> out(n);
  for (float& x : out) x = std::bit_cast<float>(static_cast<std::uint32_t>(random() * 2654435761u));
  for (float& x : out) {
    if (!std::isfinite(x)) x = 1.5F;
  }
  out[0] = -0.0F;
  out[1] = std::numeric_limits<float>::denorm_min();
  return out;
}

std::vector<std::uint32_t> bits(const std::vector<float>& row) {
  std::vector<std::uint32_t> out;
  for (const float x : row) out.push_back(std::bit_cast<std::uint32_t>(x));
  return out;
}

TEST(row_arithmetic, every_variant_sums_in_order_from_plus_zero) {
  constexpr std::size_t n = 1037;  // blocks of 64, then of 8, then single ones
  std::vector<std::vector<float>> rows;
  std::vector<row_term> terms;
  for (unsigned seed = 0; seed < 9; ++seed) rows.push_back(odd_values(n, seed));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    terms.push_back({r % 3 == 0 ? 1.0F : 0.3F - static_cast<float>(r), rows[r].data()});
  }
  for (const auto& features : {kernels::cpu_features{}, kernels::detect_cpu_features()}) {
    const row_arithmetic& here = pick_row_arithmetic(features);
    for (const std::size_t count : {0, 1, 2, 9}) {
      std::vector<float> out(n, 7.0F);
      here.sum(out.data(), std::span(terms).first(count), n);
      for (std::size_t i = 0; i < n; ++i) {
        float due = 0;
        for (std::size_t r = 0; r < count; ++r) {
          due = terms[r].weight == 1.0F ? due + rows[r][i]
                                        : std::fma(terms[r].weight, rows[r][i], due);
        }
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(due))
            << count << " rows, element " << i;
      }
      if (count > 0) {
        EXPECT_EQ(bits(out)[0] >> 31, 0u);  // +0 + -0
      }
    }
  }
}

TEST(row_arithmetic, a_sum_may_take_the_place_of_one_of_its_rows) {
  constexpr std::size_t n = 75;
  const auto x = odd_values(n, 1);
  const auto y = odd_values(n, 2);
  for (const auto& features : {kernels::cpu_features{}, kernels::detect_cpu_features()}) {
    const row_arithmetic& here = pick_row_arithmetic(features);
    std::vector<float> apart(n);
    std::vector<float> in_place = y;
    here.sum(apart.data(), std::vector<row_term>{{0.5F, x.data()}, {2.0F, y.data()}}, n);
    here.sum(in_place.data(), std::vector<row_term>{{0.5F, x.data()}, {2.0F, in_place.data()}}, n);
    EXPECT_EQ(bits(in_place), bits(apart));
  }
}

TEST(row_arithmetic, widens_and_narrows_like_the_scalar_conversions) {
  for (const auto& features : {kernels::cpu_features{}, kernels::detect_cpu_features()}) {
    const row_arithmetic& rows = pick_row_arithmetic(features);
    const auto x = odd_values(100, 3);
    std::vector<std::uint16_t> half(100);
    std::vector<float> back(100);
    for (const dtype type : {dtype::f16, dtype::bf16}) {
      rows.narrow(half.data(), type, x.data(), 100);
      rows.widen(back.data(), half.data(), type, 100);
      for (std::size_t i = 0; i < 100; ++i) {
        const std::uint16_t due = type == dtype::f16 ? f16_from_f32(x[i]) : bf16_from_f32(x[i]);
        EXPECT_EQ(half[i], due);
        const float wide = type == dtype::f16 ? f32_from_f16(due) : f32_from_bf16(due);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(wide));
      }
    }
    rows.narrow(back.data(), dtype::f32, x.data(), 100);
    EXPECT_EQ(bits(back), bits(x));
  }
}

}  // namespace
}  // namespace moetier::client
