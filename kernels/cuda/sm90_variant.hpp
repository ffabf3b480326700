#pragma once
// Which of the two-GEMM kernels serves a call of an sm_90 backend: the ladder (rows as wgmma's N,
// tiles of 8 to 64 rows), made for weights that stream once past few rows, or the straight one
// (rows as M, tiles of 128), made for tensor cores that are busy. A pure function of what the host
// knows; a wrong guess costs time, never a result. `exact` always takes the ladder, since both
// kernels add in different orders and a row's bits must not depend on the batch.
//
// Thread: any (pure functions).

#include <cstdint>

#include "kernels/backend.hpp"
#include "kernels/cuda/ladder_launch.hpp"
#include "kernels/cuda/row_tile.hpp"
#include "kernels/cuda/straight_launch.hpp"

namespace moetier::kernels::cuda {

enum class gemm_variant : std::uint8_t { ladder = 0, straight = 1 };

// From this many rows an active slot on, the straight kernel wins (measured: 56 to 64 on H200).
inline constexpr std::uint32_t k_straight_from_rows = 56;

struct gemm_choice {
  gemm_variant variant = gemm_variant::ladder;
  std::uint32_t tile_rows = 64;

  bool operator==(const gemm_choice&) const = default;
};

// The ladder's tiles are no higher than nearly all slots fill, since lower ones leave room for more
// stages: three standard deviations of a Poisson spread above the expectation, and a little.
constexpr std::uint32_t ladder_rows_for(std::uint64_t expected) noexcept {
  std::uint64_t root = 0;
  while (root * root < expected) ++root;
  const std::uint64_t enough = expected + 3 * root + 4;
  std::uint32_t rows = k_tile_rows_min;
  while (rows < k_ladder_tile_rows_max && rows < enough) rows *= 2;
  return rows;
}

// rows_per_slot: expected, 0 = unknown: then all entries are spread over all slots.
constexpr gemm_choice choose_gemm(return_mode mode, std::uint64_t entries, std::uint32_t slots,
                                  std::uint32_t rows_per_slot) noexcept {
  const std::uint64_t expected =
      rows_per_slot != 0 ? rows_per_slot : (slots == 0 ? 0 : entries / slots);
  if (mode != return_mode::exact && expected >= k_straight_from_rows)
    return {gemm_variant::straight, k_straight_tile_rows};
  return {gemm_variant::ladder,
          ladder_rows_for(expected < k_straight_from_rows ? expected : k_straight_from_rows)};
}

}  // namespace moetier::kernels::cuda
