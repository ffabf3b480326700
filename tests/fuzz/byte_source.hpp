#pragma once
// Values drawn from an input's bytes, in order; after the last byte everything is zero. For targets
// whose input is a sequence of acts rather than one document. Thread: owner.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace moetier::fuzz {

class byte_source final {
 public:
  explicit byte_source(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const noexcept { return bytes_.empty(); }
  std::uint8_t u8() noexcept { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() noexcept { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() noexcept { return static_cast<std::uint32_t>(number(4)); }
  bool coin() noexcept { return (u8() & 1) != 0; }
  // Requires: 0 < n <= 256.
  std::uint32_t below(std::uint32_t n) noexcept { return u8() % n; }

  // Small numbers, bounds of types, and any other, in two bytes or nine.
  std::uint64_t any() noexcept {
    constexpr std::array<std::uint64_t, 12> k_bounds = {
        0, 1, 2, 64, 127, 255, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
    switch (below(4)) {
      case 0: return k_bounds[below(k_bounds.size())];
      case 1: return number(8);
      default: return u8();
    }
  }

  std::span<const std::uint8_t> take(std::size_t count) noexcept {
    const auto head = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(head.size());
    return head;
  }
  std::span<const std::uint8_t> rest() noexcept { return take(bytes_.size()); }
  std::string text(std::size_t most) {
    const auto bytes = take(std::min<std::size_t>(u8(), most));
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::uint64_t number(std::size_t count) noexcept {
    std::uint64_t v = 0;
    const auto head = take(count);
    for (std::size_t i = 0; i < head.size(); ++i) v |= std::uint64_t{head[i]} << (8 * i);
    return v;
  }

  std::span<const std::uint8_t> bytes_;
};

}  // namespace moetier::fuzz
