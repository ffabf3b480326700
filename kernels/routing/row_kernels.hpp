#pragma once
// Row kernels of routing: the passes over one row of logits or keys that pay for vectors, as a
// table of pointers with a scalar and an AVX2 form that lead to the same ids and weights in bits. A
// row lies in a buffer of f32, 32-byte aligned, padded with -inf to a multiple of 32, so that no
// form has a tail. What computes scores is in score_kernels.hpp. Thread: any (constants).

#include <cstdint>

#include "kernels/routing/score_kernels.hpp"

namespace moetier::kernels {

inline constexpr std::uint32_t k_row_lanes = 32;
inline constexpr std::uint32_t k_select_most = 32;        // select()'s largest `most`
inline constexpr std::uint32_t k_select_candidates = 32;  // it gives up above
inline constexpr std::uint32_t k_not_selected = ~0u;

struct row_kernels {
  // The first NaN or +inf at or after 0; `padded` if there is none.
  std::uint32_t (*find_bad)(const float* row, std::uint32_t padded);
  // The largest value.
  float (*largest)(const float* row, std::uint32_t padded);
  // A value that at least `count` of the row's values reach; -inf where count > 32. What lies below
  // it need not be looked at. Forms may differ in it.
  float (*cut)(const float* row, std::uint32_t padded, std::uint32_t count);
  // Writes the ids of all values >= cut that are not -inf, ascending, and returns how many.
  // Requires: no NaN in the row; room for `padded` ids.
  std::uint32_t (*collect)(const float* row, std::uint32_t padded, float cut, std::uint16_t* ids);
  // The ids of the `most` largest values that are not -inf, best first, equal values by id: writes
  // and returns how many, at most `most`; k_not_selected where too many values stand near the
  // border. Requires: no NaN; most <= k_select_most; room for k_select_most + 1 ids.
  std::uint32_t (*select)(const float* row, std::uint32_t padded, std::uint32_t most,
                          std::uint16_t* ids);
  // Per group of `width` neighbours the sum of its two largest keys; the largest where only one is
  // not -inf.
  void (*group_pairs)(const float* keys, std::uint32_t width, std::uint32_t groups, float* sums);
  // Writes -inf over `keys` outside the `kept` best groups by `sums`, equal ones by number.
  // Requires: groups <= k_row_lanes; `sums` 32-byte aligned and padded with -inf to k_row_lanes.
  void (*drop_groups)(const float* sums, std::uint32_t groups, std::uint32_t kept,
                      std::uint32_t width, float* keys);
  const score_kernels* scores;
};

extern const row_kernels k_row_kernels_scalar;
extern const row_kernels k_row_kernels_avx2;

}  // namespace moetier::kernels
