// The house's exp and silu against double, over the whole range of f32, and both forms in bits.
// Every 997th float is tried; MOETIER_TEST_STRIDE=1 in the environment tries all.
#include "kernels/math/house_math.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "kernels/backend.hpp"
#include "tests/kernels/house_math_avx2_probe.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();

// Distance from the truth in units of the last place of an f32 near it.
double ulps(float value, double truth) {
  const double magnitude = std::max(std::fabs(truth), 0x1p-126);
  return std::fabs(double{value} - truth) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

template <class Visit>
void visit_floats(Visit&& visit) {
  const char* asked = std::getenv("MOETIER_TEST_STRIDE");
  const std::uint64_t stride = asked != nullptr ? std::stoull(asked) : 997;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += stride)
    visit(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST(house_exp, is_within_one_ulp_everywhere) {
  double worst = 0;
  visit_floats([&](float x) {
    if (!(x > -150.0F && x < 88.72283F)) return;
    worst = std::max(worst, ulps(house_exp(x), std::exp(double{x})));
  });
  EXPECT_LE(worst, 1.0);
}

TEST(house_exp, is_exact_at_zero_and_at_its_ends) {
  EXPECT_EQ(house_exp(0.0F), 1.0F);
  EXPECT_EQ(house_exp(-0.0F), 1.0F);
  EXPECT_EQ(house_exp(-k_infinity), 0.0F);
  EXPECT_FALSE(std::signbit(house_exp(-k_infinity)));
  EXPECT_EQ(house_exp(-104.0F), 0.0F);
  EXPECT_EQ(house_exp(-103.9F), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(house_exp(88.73F), k_infinity);
  EXPECT_EQ(house_exp(k_infinity), k_infinity);
  EXPECT_TRUE(std::isnan(house_exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(house_silu, is_within_two_point_three_ulp_and_near_zero_where_its_exp_overflows) {
  double worst = 0;
  double worst_tail = 0;
  visit_floats([&](float g) {
    if (!std::isfinite(g)) return;
    const double truth = double{g} / (1.0 + std::exp(-double{g}));
    if (g > -88.7F)
      worst = std::max(worst, ulps(house_silu(g), truth));
    else
      worst_tail = std::max(worst_tail, std::fabs(double{house_silu(g)} - truth));
  });
  EXPECT_LE(worst, 2.3);
  EXPECT_LE(worst_tail, 2.7e-37);
}

TEST(house_swiglu, gives_the_worked_value) { EXPECT_NEAR(house_swiglu(1, 2), 1.462117, 1e-6); }

TEST(the_avx2_forms, are_equal_in_bits_to_the_scalar_forms) {
  const cpu_features features = detect_cpu_features();
  if (!features.avx2 || !features.fma) GTEST_SKIP() << "no AVX2 and FMA on this processor";
  std::array<float, 4096> x;
  std::array<float, 4096> up;
  std::array<float, 4096> e;
  std::array<float, 4096> s;
  std::size_t filled = 0;
  std::size_t different = 0;
  visit_floats([&](float value) {
    x[filled] = value;
    up[filled] = 0.3F + static_cast<float>(filled);
    if (++filled < x.size()) return;
    filled = 0;
    exp_avx2(x.data(), x.size(), e.data());
    swiglu_avx2(x.data(), up.data(), x.size(), s.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      different += !same(e[i], house_exp(x[i])) || !same(s[i], house_swiglu(x[i], up[i])) ? 1 : 0;
  });
  EXPECT_EQ(different, 0u);
}

}  // namespace
}  // namespace moetier::kernels
