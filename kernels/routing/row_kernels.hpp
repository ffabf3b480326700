#pragma once
// Row kernels of routing: the passes over one row of E logits that pay for vectors, as a table of
// pointers with a scalar and an AVX2 form that are equal in bits. A row lies in a buffer of f32,
// 32-byte aligned, padded with -inf to a multiple of 32, so that no form has a tail. Choosing and
// ordering experts is route.cpp's. Thread: any (constants).

#include <cstdint>

namespace moetier::kernels {

inline constexpr std::uint32_t k_row_lanes = 32;

struct row_kernels {
  // The first NaN or +inf at or after 0; `padded` if there is none.
  std::uint32_t (*find_bad)(const float* row, std::uint32_t padded);
  // A value that at least `count` of the row's values reach: the count-th largest of the 32 lanes'
  // maxima (e mod 32), -inf where count > 32. What lies below it need not be looked at.
  float (*cut)(const float* row, std::uint32_t padded, std::uint32_t count);
  // Writes the ids of all values >= cut that are not -inf, ascending, and returns how many.
  // Requires: no NaN in the row; room for `padded` ids.
  std::uint32_t (*collect)(const float* row, std::uint32_t padded, float cut, std::uint16_t* ids);
  // Sum of exp(row[e] - largest): 32 lanes (e mod 32) in ascending e, folded 16, 8, 4, 2, 1.
  float (*exp_sum)(const float* row, std::uint32_t padded, float largest);
  // values[i] = exp(values[i] - largest). Requires: room for a multiple of 8.
  void (*exp_each)(float* values, std::uint32_t count, float largest);
};

extern const row_kernels k_row_kernels_scalar;
extern const row_kernels k_row_kernels_avx2;

}  // namespace moetier::kernels
