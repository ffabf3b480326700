#pragma once
// Reading checkpoint tensors value by value: element i of a row-major tensor as f32, whatever of
// bf16, f16 and f32 it is stored in. Bytes are copied out, because a checkpoint promises 2-byte
// alignment only. Thread: any.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "schemas/base/dtype.hpp"

namespace moetier::kernels {

inline std::uint16_t bits16_at(std::span<const std::byte> tensor, std::size_t i) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, tensor.data() + i * sizeof bits, sizeof bits);
  return bits;
}

inline float f32_at(std::span<const std::byte> tensor, std::size_t i) noexcept {
  float value = 0;
  std::memcpy(&value, tensor.data() + i * sizeof value, sizeof value);
  return value;
}

// Requires: stored is bf16, f16 or f32.
inline float value_at(std::span<const std::byte> tensor, dtype stored, std::size_t i) noexcept {
  switch (stored) {
    case dtype::bf16: return f32_from_bf16(bits16_at(tensor, i));
    case dtype::f16: return f32_from_f16(bits16_at(tensor, i));
    default: return f32_at(tensor, i);
  }
}

}  // namespace moetier::kernels
