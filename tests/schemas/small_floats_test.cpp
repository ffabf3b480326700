// Every code of the small types, and how values round to them.
#include "schemas/base/small_floats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace moetier {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

static_assert(f32_from_e4m3(0x7e) == 448.0F);
static_assert(e4m3_from_f32(448.0F) == 0x7e);
static_assert(f32_from_e2m1(0xf) == -6.0F);
static_assert(f32_from_ue8m0(127) == 1.0F);
static_assert(f32_from_int4(0) == -8.0F);

TEST(e4m3, has_the_value_of_its_formula_at_every_code) {
  for (unsigned code = 0; code < 256; ++code) {
    const auto c = static_cast<std::uint8_t>(code);
    const float value = f32_from_e4m3(c);
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(is_e4m3_nan(c));
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    EXPECT_FALSE(is_e4m3_nan(c));
    const int exponent = static_cast<int>(code >> 3 & 15);
    const double fraction = code & 7;
    const double truth =
        exponent == 0 ? std::ldexp(fraction / 8, -6) : std::ldexp(1 + fraction / 8, exponent - 7);
    EXPECT_EQ(value, code < 128 ? truth : -truth) << code;
    EXPECT_EQ(std::signbit(value), code >= 128) << code;
    EXPECT_EQ(e4m3_from_f32(value), c) << code;
  }
}

TEST(e4m3, rounds_to_the_nearest_code_and_ties_to_even) {
  for (unsigned code = 0; code < 0x7e; ++code) {
    const float low = f32_from_e4m3(static_cast<std::uint8_t>(code));
    const float high = f32_from_e4m3(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    const unsigned even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(e4m3_from_f32(middle), even);
    EXPECT_EQ(e4m3_from_f32(-middle), even | 0x80);
    EXPECT_EQ(e4m3_from_f32(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(e4m3_from_f32(std::nextafter(middle, 1000.0F)), code + 1);
  }
}

TEST(e4m3, saturates_and_keeps_nan) {
  EXPECT_EQ(e4m3_from_f32(449.0F), 0x7e);
  EXPECT_EQ(e4m3_from_f32(1e30F), 0x7e);
  EXPECT_EQ(e4m3_from_f32(-k_infinity), 0xfe);
  EXPECT_EQ(e4m3_from_f32(k_nan), 0x7f);
  EXPECT_EQ(e4m3_from_f32(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(e4m3_from_f32(-0.0F), 0x80);
}

TEST(e2m1, has_its_sixteen_values) {
  const float magnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (unsigned code = 0; code < 16; ++code) {
    const float value = f32_from_e2m1(static_cast<std::uint8_t>(code));
    EXPECT_EQ(value, code < 8 ? magnitudes[code] : -magnitudes[code - 8]);
    EXPECT_EQ(std::signbit(value), code >= 8);
    EXPECT_EQ(e2m1_from_f32(value), code);
    EXPECT_EQ(f32_from_e2m1(static_cast<std::uint8_t>(code | 0xf0)), value);
  }
}

TEST(e2m1, rounds_to_the_nearest_code_and_ties_to_even_and_saturates) {
  for (unsigned code = 0; code < 7; ++code) {
    const float middle = (f32_from_e2m1(static_cast<std::uint8_t>(code)) +
                          f32_from_e2m1(static_cast<std::uint8_t>(code + 1))) /
                         2;
    const unsigned even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(e2m1_from_f32(middle), even);
    EXPECT_EQ(e2m1_from_f32(-middle), even | 8);
    EXPECT_EQ(e2m1_from_f32(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(e2m1_from_f32(std::nextafter(middle, 10.0F)), code + 1);
  }
  EXPECT_EQ(e2m1_from_f32(100.0F), 7);
  EXPECT_EQ(e2m1_from_f32(-k_infinity), 15);
  EXPECT_EQ(e2m1_from_f32(k_nan), 7);
}

TEST(ue8m0, is_a_power_of_two_at_every_code) {
  for (unsigned code = 0; code < 255; ++code) {
    const auto c = static_cast<std::uint8_t>(code);
    EXPECT_FALSE(is_ue8m0_nan(c));
    EXPECT_EQ(f32_from_ue8m0(c), std::ldexp(1.0, static_cast<int>(code) - 127)) << code;
    EXPECT_EQ(ue8m0_from_f32(f32_from_ue8m0(c)), c);
    EXPECT_EQ(ue8m0_at_least(f32_from_ue8m0(c)), code == 0 ? 1 : code);
  }
  EXPECT_TRUE(is_ue8m0_nan(255));
  EXPECT_TRUE(std::isnan(f32_from_ue8m0(255)));
}

TEST(ue8m0, rounds_up_in_one_form_and_to_nearest_in_the_other) {
  EXPECT_EQ(ue8m0_at_least(1.0F), 127);
  EXPECT_EQ(ue8m0_at_least(std::nextafter(1.0F, 2.0F)), 128);
  EXPECT_EQ(ue8m0_at_least(0.0F), 1);
  EXPECT_EQ(ue8m0_at_least(0x1p-149F), 1);
  EXPECT_EQ(ue8m0_at_least(0x1.8p127F), 254);
  EXPECT_EQ(ue8m0_at_least(k_infinity), 255);
  EXPECT_EQ(ue8m0_at_least(k_nan), 255);
  for (unsigned code = 0; code < 254; ++code) {
    const float middle = (f32_from_ue8m0(static_cast<std::uint8_t>(code)) / 2 +
                          f32_from_ue8m0(static_cast<std::uint8_t>(code + 1)) / 2);
    EXPECT_EQ(ue8m0_from_f32(middle), code % 2 == 0 ? code : code + 1) << code;
    EXPECT_EQ(ue8m0_from_f32(std::nextafter(middle, 0.0F)), code) << code;
    EXPECT_EQ(ue8m0_from_f32(std::nextafter(middle, k_infinity)), code + 1) << code;
  }
  EXPECT_EQ(ue8m0_from_f32(0.0F), 0);
  EXPECT_EQ(ue8m0_from_f32(k_infinity), 254);
  EXPECT_EQ(ue8m0_from_f32(k_nan), 255);
}

TEST(int4, is_its_code_less_eight) {
  for (unsigned code = 0; code < 16; ++code)
    EXPECT_EQ(f32_from_int4(static_cast<std::uint8_t>(code)), static_cast<float>(code) - 8);
}

}  // namespace
}  // namespace moetier
