#pragma once
// The row quantiser 1 x 128: activations as E4M3 with one f32 scale per 128 columns, equal in bits
// on every backend. a = the largest magnitude of the 128:
//   a = 0              scale 1, codes 0
//   a is not finite    scale NaN, every code 0x7f: that block, and only it, is NaN
//   else               scale = max(a / 448, 2^-126), code = E4M3(x * (1 / scale))
// Every operation rounds to nearest even, codes saturate. The floor keeps 1 / scale finite. The
// last block of a row may be shorter. Thread: any (pure functions).

#include <cstddef>
#include <cstdint>

#include "kernels/backend.hpp"

namespace moetier::kernels {

inline constexpr std::size_t k_row_block = 128;

// Writes columns codes and ceil(columns / 128) scales of one row.
using quantise_row_fn = void (*)(const float* row, std::size_t columns, std::uint8_t* codes,
                                 float* scales);

void quantise_row(const float* row, std::size_t columns, std::uint8_t* codes, float* scales);

// The fastest form that the features allow; all give the same bits.
quantise_row_fn pick_row_quantiser(const cpu_features& features) noexcept;

struct row_quantiser_kernels {
  quantise_row_fn quantise_row;
};
extern const row_quantiser_kernels k_row_quantiser_avx2;  // needs AVX2

}  // namespace moetier::kernels
