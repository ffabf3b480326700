#pragma once
// Which of the two-GEMM kernels serves a call of an sm_90 backend: the ladder (rows as wgmma's N,
// tiles of up to 64 rows), made for weights that stream once past few rows, or the straight one
// (rows as M, tiles of 128), made for tensor cores that are busy. A pure function of what the host
// knows; a wrong guess costs time, never a result. `exact` always takes the ladder, since both
// kernels add in different orders and a row's bits must not depend on the batch.
//
// Thread: any (pure functions).

#include <cstdint>

#include "kernels/backend.hpp"

namespace moetier::kernels::cuda {

enum class gemm_variant : std::uint8_t { ladder = 0, straight = 1 };

// From this many rows an active slot on, the straight kernel wins (measured: 56 to 64 on H200).
inline constexpr std::uint32_t k_straight_from_rows = 56;

// rows_per_slot: expected, 0 = unknown: then all entries are spread over all slots.
constexpr gemm_variant variant_for(return_mode mode, std::uint64_t entries, std::uint32_t slots,
                                   std::uint32_t rows_per_slot) noexcept {
  if (mode == return_mode::exact) return gemm_variant::ladder;
  const std::uint64_t expected =
      rows_per_slot != 0 ? rows_per_slot : (slots == 0 ? 0 : entries / slots);
  return expected >= k_straight_from_rows ? gemm_variant::straight : gemm_variant::ladder;
}

constexpr std::uint32_t tile_rows_of(gemm_variant variant) noexcept {
  return variant == gemm_variant::straight ? 128 : 64;
}

}  // namespace moetier::kernels::cuda
