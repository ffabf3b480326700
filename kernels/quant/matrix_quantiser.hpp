#pragma once
// Quantising one matrix [out, in] of f32 values into canonical bytes
// (schemas/model/weight_format.hpp). Codes round to nearest, ties to even, and saturate.
//   fp8_tensor  one scale for the matrix, amax / 448 (written for every row)
//   fp8_block   amax / 448 per 128 x 128
//   mxfp8       the smallest power of two not below amax / 448, per row and 32 columns
//   mxfp4       the smallest power of two not below amax / 6, per row and 32 columns
//   nvfp4       s2 = amax / (6 * 448) of the matrix, s = E4M3(group amax / 6 / s2), per 16 columns
//   int4_g128   bf16(amax / 7) per row and 128 columns, codes -8..7 + 8
// A group of zeros gets scale 1 and zero codes. Division and rounding are those of f32, so bytes
// are the same on every machine. Thread: any (pure functions).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier::kernels {

// How far the stored values are from the given ones.
struct quantise_error {
  double max_abs = 0;       // the largest |stored - given|
  double rms_relative = 0;  // sqrt(sum (stored - given)^2 / sum given^2); 0 for a matrix of zeros
};

struct quantised_matrix {
  std::vector<std::byte> bytes;
  quantise_error error;
};

// reason::weight_mismatch where a value is not finite; reason::invalid_shape where `in` does not
// fit the format's groups. Requires: values.size() == out * in, out and in >= 1.
expected<quantised_matrix> quantise_matrix(const weight_format& to, std::span<const float> values,
                                           std::uint32_t out, std::uint32_t in);

// From canonical bytes of an unquantised matrix. Requires: from.quant is none; bytes of its form.
expected<quantised_matrix> quantise_matrix(const weight_format& to, const weight_format& from,
                                           std::span<const std::byte> bytes, std::uint32_t out,
                                           std::uint32_t in);

}  // namespace moetier::kernels
