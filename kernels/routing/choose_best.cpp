#include <algorithm>
#include <bit>
#include <functional>

#include "kernels/routing/row_pass.hpp"

namespace moetier::kernels {
namespace {

// Larger key first, then lower id, as one number: the order-preserving bits of the key (-0 made +0)
// above the inverted id. No two of a row are equal.
constexpr std::uint64_t packed_of(float key, std::uint32_t id) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(key + 0.0F);
  const std::uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return std::uint64_t{ordered} << 32 | ~id;
}

constexpr std::uint16_t id_of(std::uint64_t packed) noexcept {
  return static_cast<std::uint16_t>(~static_cast<std::uint32_t>(packed));
}

}  // namespace

std::uint32_t choose_best(const row_plan& plan, const float* keys, std::uint32_t padded,
                          std::uint32_t most, row_scratch& scratch) noexcept {
  if (plan.fused) {
    const std::uint32_t count = plan.rows.select(keys, padded, most, scratch.chosen);
    if (count != k_not_selected) return count;
  }
  const float cut = plan.rows.cut(keys, padded, most);
  const std::uint32_t count = plan.rows.collect(keys, padded, cut, scratch.candidates);
  std::uint64_t* const packed = scratch.packed;
  for (std::uint32_t i = 0; i < count; ++i)
    packed[i] = packed_of(keys[scratch.candidates[i]], scratch.candidates[i]);
  const std::uint32_t kept = std::min(count, most);
  std::partial_sort(packed, packed + kept, packed + count, std::greater<>());
  for (std::uint32_t i = 0; i < kept; ++i) scratch.chosen[i] = id_of(packed[i]);
  return kept;
}

}  // namespace moetier::kernels
