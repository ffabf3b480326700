#pragma once
// The small element types of quantised weights and their scales, code by code:
//   E4M3   sign, 4 exponent bits (bias 7), 3 fraction bits; no infinity, 0x7f and 0xff are NaN,
//          largest 448
//   E2M1   sign, then 0 .5 1 1.5 2 3 4 6; no infinity, no NaN; only the low 4 bits are read
//   UE8M0  2^(code - 127), code 0 is 2^-127 (subnormal in f32), 255 is NaN
//   int4   code - 8, codes 0..15; only the low 4 bits are read
// Decoding is exact. Encoding rounds to nearest, ties to the even code, and saturates: an infinity
// becomes the largest magnitude. Thread: any (pure functions).

#include <bit>
#include <cstdint>

namespace moetier {

inline constexpr float k_e4m3_max = 448.0F;
inline constexpr float k_e2m1_max = 6.0F;

constexpr bool is_e4m3_nan(std::uint8_t code) noexcept { return (code & 0x7fu) == 0x7fu; }
constexpr bool is_ue8m0_nan(std::uint8_t code) noexcept { return code == 0xffu; }

constexpr float f32_from_e4m3(std::uint8_t code) noexcept {
  const std::uint32_t sign = (code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) {  // subnormal or zero: multiples of 2^-9
    const float value = static_cast<float>(magnitude) * 0x1p-9F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

// NaN gives 0x7f.
constexpr std::uint8_t e4m3_from_f32(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
  const std::uint32_t a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) return 0x7f;
  if (a >= std::bit_cast<std::uint32_t>(k_e4m3_max)) return static_cast<std::uint8_t>(sign | 0x7eu);
  if (a < 0x3c800000u) {
    // Below 2^-6 the result is subnormal: adding 2^14 rounds to a multiple of 2^-9.
    const float shifted = std::bit_cast<float>(a) + 0x1p14F;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000u));
  }
  const std::uint32_t rounded = a + 0x7ffffu + ((a >> 20) & 1u);
  return static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
}

constexpr float f32_from_e2m1(std::uint8_t code) noexcept {
  // Arithmetic, since a table would be a stack frame on a device.
  const std::uint32_t sign = (code & 8u) << 28;
  const std::uint32_t exponent = code >> 1 & 3u;
  const std::uint32_t half = code & 1u;
  if (exponent == 0) return std::bit_cast<float>(sign | (half != 0 ? 0x3f000000u : 0u));  // 0, 0.5
  return std::bit_cast<float>(sign | (exponent + 126) << 23 | half << 22);
}

// NaN gives 7, the largest.
constexpr std::uint8_t e2m1_from_f32(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) return 7;
  const auto magnitude = std::bit_cast<float>(a);
  // The number of middles passed, without branches: random weights would mispredict them.
  const unsigned code = unsigned{magnitude > 0.25F} + unsigned{magnitude >= 0.75F} +
                        unsigned{magnitude > 1.25F} + unsigned{magnitude >= 1.75F} +
                        unsigned{magnitude > 2.5F} + unsigned{magnitude >= 3.5F} +
                        unsigned{magnitude > 5.0F};
  return static_cast<std::uint8_t>(code | (bits >> 28 & 8u));
}

constexpr float f32_from_ue8m0(std::uint8_t code) noexcept {
  if (code == 0xffu) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(code == 0 ? 0x00400000u : std::uint32_t{code} << 23);
}

// The smallest power of two that is not below x, between 2^-126 and 2^127, by exponent bits; NaN
// and infinity give 255. Requires: x is not negative.
constexpr std::uint8_t ue8m0_at_least(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (bits >= 0x7f800000u) return 0xff;
  const std::uint32_t up = (bits + 0x7fffffu) >> 23;
  return static_cast<std::uint8_t>(up < 1 ? 1 : up > 254 ? 254 : up);
}

// The nearest power of two (ties to the even code), saturating to codes 0..254; NaN gives 255.
// Requires: x is not negative.
constexpr std::uint8_t ue8m0_from_f32(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (bits > 0x7f800000u) return 0xff;
  if (bits < 0x00800000u) return bits > 0x00600000u ? 1 : 0;  // 0.75 * 2^-126 ties to code 0
  const std::uint32_t code = bits >> 23;
  const std::uint32_t fraction = bits & 0x7fffffu;
  const std::uint32_t up = fraction > 0x400000u || (fraction == 0x400000u && (code & 1u) != 0);
  return static_cast<std::uint8_t>(code + up > 254 ? 254 : code + up);
}

constexpr float f32_from_int4(std::uint8_t code) noexcept {
  return static_cast<float>(static_cast<int>(code & 15u) - 8);
}

}  // namespace moetier
