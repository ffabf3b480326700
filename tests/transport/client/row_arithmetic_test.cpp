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

TEST(row_arithmetic, every_variant_gives_the_same_bits) {
  const row_arithmetic& plain = pick_row_arithmetic({});
  const row_arithmetic& here = pick_row_arithmetic(kernels::detect_cpu_features());
  constexpr std::size_t n = 1037;
  const auto x = odd_values(n, 1);
  const auto y = odd_values(n, 2);
  std::vector<float> a(n), b(n);
  plain.first(a.data(), x.data(), n);
  here.first(b.data(), x.data(), n);
  EXPECT_EQ(bits(a), bits(b));
  EXPECT_EQ(bits(a)[0], 0u);  // +0 + -0
  plain.add(a.data(), y.data(), n);
  here.add(b.data(), y.data(), n);
  EXPECT_EQ(bits(a), bits(b));
  plain.first_weighted(a.data(), 0.3F, x.data(), n);
  here.first_weighted(b.data(), 0.3F, x.data(), n);
  EXPECT_EQ(bits(a), bits(b));
  plain.add_weighted(a.data(), -1.7F, y.data(), n);
  here.add_weighted(b.data(), -1.7F, y.data(), n);
  EXPECT_EQ(bits(a), bits(b));
  for (std::size_t i = 0; i < n; ++i) {
    const float due = std::fma(-1.7F, y[i], std::fma(0.3F, x[i], 0.0F));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(due));
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
