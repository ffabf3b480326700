#pragma once
// Element types of tensors that cross the tier's borders, with their sizes and exact conversions to
// and from f32. Thread: any.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace moetier {

enum class dtype : std::uint8_t {
  f32 = 0,
  f16 = 1,
  bf16 = 2,
  u8 = 3,
  i32 = 4,
  i64 = 5,
  u32 = 6,
  other = 255
};

constexpr std::size_t dtype_bytes(dtype t) noexcept {
  switch (t) {
    case dtype::f32:
    case dtype::i32:
    case dtype::u32: return 4;
    case dtype::f16:
    case dtype::bf16: return 2;
    case dtype::u8: return 1;
    case dtype::i64: return 8;
    case dtype::other: return 0;
  }
  return 0;
}

constexpr std::string_view dtype_name(dtype t) noexcept {
  switch (t) {
    case dtype::f32: return "f32";
    case dtype::f16: return "f16";
    case dtype::bf16: return "bf16";
    case dtype::u8: return "u8";
    case dtype::i32: return "i32";
    case dtype::i64: return "i64";
    case dtype::u32: return "u32";
    case dtype::other: return "other";
  }
  return "other";
}

constexpr float f32_from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Round to nearest even; NaN stays a quiet NaN.
constexpr std::uint16_t bf16_from_f32(float x) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float f32_from_f16(std::uint16_t bits) noexcept;
std::uint16_t f16_from_f32(float x) noexcept;  // round to nearest even

}  // namespace moetier
