// The house's log1p, log and router scores against double over their whole ranges, and both forms
// in bits. Every 997th float is tried; MOETIER_TEST_STRIDE=1 in the environment tries all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/math/score_math.hpp"
#include "tests/kernels/house_math_score_probe.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();

double ulps(float value, double truth) {
  const double magnitude = std::max(std::fabs(truth), 0x1p-126);
  return std::fabs(double{value} - truth) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

// Every so many floats between two of one sign, both included.
template <class Visit>
void visit_between(float from, float to, Visit&& visit, std::uint64_t most_stride = 997) {
  const char* asked = std::getenv("MOETIER_TEST_STRIDE");
  const std::uint64_t stride = asked != nullptr ? std::stoull(asked) : most_stride;
  const auto last = std::bit_cast<std::uint32_t>(to);
  for (std::uint64_t bits = std::bit_cast<std::uint32_t>(from); bits < last; bits += stride)
    visit(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  visit(to);
}

template <class Visit>
void visit_numbers(Visit&& visit) {
  visit_between(0.0F, k_infinity, visit);
  visit_between(-0.0F, -k_infinity, visit);
}

TEST(house_log1p, is_within_one_ulp_from_zero_to_one) {
  double worst = 0;
  visit_between(
      0.0F, 1.0F,
      [&](float t) { worst = std::max(worst, ulps(house_log1p(t), std::log1p(double{t}))); }, 101);
  EXPECT_LE(worst, 1.0);
  EXPECT_EQ(house_log1p(0.0F), 0.0F);
  EXPECT_EQ(house_log1p(1e-45F), 1e-45F);
}

TEST(house_log, is_within_two_ulp_up_to_the_longest_sum) {
  double worst = 0;
  visit_between(
      1.0F, 4096.0F,
      [&](float x) { worst = std::max(worst, ulps(house_log(x), std::log(double{x}))); }, 101);
  EXPECT_LE(worst, 2.0);
  EXPECT_EQ(house_log(1.0F), 0.0F);
}

TEST(house_sigmoid, is_within_two_and_a_half_ulp_in_both_tails) {
  double worst = 0;
  visit_numbers([&](float x) {
    if (!std::isfinite(x) || x < -87.0F) return;
    const double e = std::exp(-std::fabs(double{x}));
    worst = std::max(worst, ulps(house_sigmoid(x), (x >= 0 ? 1.0 : e) / (1.0 + e)));
  });
  EXPECT_LE(worst, 2.5);
  EXPECT_EQ(house_sigmoid(0.0F), 0.5F);
  EXPECT_EQ(house_sigmoid(-k_infinity), 0.0F);
  EXPECT_EQ(house_sigmoid(3e38F), 1.0F);
}

TEST(house_softplus, is_within_two_and_a_half_ulp) {
  double worst = 0;
  visit_numbers([&](float x) {
    if (!std::isfinite(x) || x < -87.0F) return;
    const double truth = std::max(double{x}, 0.0) + std::log1p(std::exp(-std::fabs(double{x})));
    worst = std::max(worst, ulps(house_softplus(x), truth));
  });
  EXPECT_LE(worst, 2.5);
  EXPECT_EQ(house_softplus(-k_infinity), 0.0F);
  EXPECT_EQ(house_softplus(100.0F), 100.0F);
}

// Feeds arrays of 4096 numbers to both forms and counts those that differ in bits.
class comparison final {
 public:
  comparison(void (*wide)(const float*, std::size_t, float*), float (*plain)(float))
      : wide_(wide), plain_(plain) {}

  void operator()(float x) {
    x_.push_back(x);
    if (x_.size() == 4096) flush();
  }

  std::size_t different() {
    while (x_.size() % 8 != 0) x_.push_back(0.0F);
    flush();
    return different_;
  }

 private:
  void flush() {
    std::vector<float> y(x_.size());
    wide_(x_.data(), x_.size(), y.data());
    for (std::size_t i = 0; i < x_.size(); ++i)
      different_ +=
          std::bit_cast<std::uint32_t>(y[i]) != std::bit_cast<std::uint32_t>(plain_(x_[i])) ? 1U
                                                                                            : 0U;
    x_.clear();
  }

  void (*wide_)(const float*, std::size_t, float*);
  float (*plain_)(float);
  std::vector<float> x_;
  std::size_t different_ = 0;
};

TEST(the_avx2_scores, are_equal_in_bits_to_the_scalar_ones) {
  const cpu_features features = detect_cpu_features();
  if (!features.avx2 || !features.fma) GTEST_SKIP() << "no AVX2 and FMA on this processor";
  comparison log1p(log1p_avx2, house_log1p);
  visit_between(0.0F, 1.0F, log1p, 101);
  EXPECT_EQ(log1p.different(), 0U);
  comparison exp_below(exp_below_avx2, house_exp);
  visit_between(-0.0F, -k_infinity, exp_below);
  visit_between(-80.0F, -110.0F, exp_below, 7);  // subnormal results and the end
  EXPECT_EQ(exp_below.different(), 0U);
  comparison sigmoid(sigmoid_avx2, house_sigmoid);
  visit_numbers([&](float x) { x < k_infinity ? sigmoid(x) : void(); });
  EXPECT_EQ(sigmoid.different(), 0U);
  comparison softplus(softplus_avx2, house_softplus);
  visit_numbers([&](float x) { x < k_infinity ? softplus(x) : void(); });
  EXPECT_EQ(softplus.different(), 0U);
}

}  // namespace
}  // namespace moetier::kernels
