#pragma once
// Formats of expert weights and the canonical bytes of one matrix [out, in]: what loaders produce,
// backends pack into pages and quantisers write, whatever names and orders a checkpoint uses.
//
//   quant       codes                                  scales                               value
//   none        stored dtype, row-major [out, in]      -                                    code
//   fp8_tensor  E4M3 [out, in]                         f32 [out] (equal where per tensor)   q·s
//   fp8_block   E4M3 [out, in]                         f32 [ceil(out/128), ceil(in/128)]    q·s
//   mxfp8       E4M3 [out, in]                         UE8M0 [out, in/32] q·2^(s-127) mxfp4 E2M1
//   [out, in/2], low nibble = even    UE8M0 [out, in/32]                   q·2^(s-127) nvfp4 E2M1
//   as mxfp4                          E4M3 [out, in/16], then one f32 s2   (q·s)·s2 int4_g128 code
//   + 8, nibbles as mxfp4             bf16 [out, in/128]                   q·s
//
// Codes, then scales at the next multiple of 64, then s2 at the next multiple of 64. Every product
// is one f32 rounding. Thread: any (values, pure functions).

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "schemas/base/dtype.hpp"

namespace moetier {

enum class quant_kind : std::uint8_t {
  none = 0,
  fp8_tensor = 1,
  fp8_block = 2,
  mxfp8 = 3,
  mxfp4 = 4,
  nvfp4 = 5,
  int4_g128 = 6,
};
inline constexpr std::uint8_t k_quant_kinds = 7;

std::string_view quant_name(quant_kind quant) noexcept;  // "fp8_block"; "" out of range
// nothing if no format has this name.
bool quant_of(std::string_view name, quant_kind& quant) noexcept;

struct weight_format {
  quant_kind quant = quant_kind::none;
  dtype stored = dtype::bf16;  // element type where quant is none; else bf16, unused

  bool operator==(const weight_format&) const = default;
};

// Columns of `in` that share one scale; 0 where there is no such group.
constexpr std::uint32_t group_columns(quant_kind quant) noexcept {
  switch (quant) {
    case quant_kind::fp8_block:
    case quant_kind::int4_g128: return 128;
    case quant_kind::mxfp8:
    case quant_kind::mxfp4: return 32;
    case quant_kind::nvfp4: return 16;
    default: return 0;
  }
}

constexpr bool is_four_bit(quant_kind quant) noexcept {
  return quant == quant_kind::mxfp4 || quant == quant_kind::nvfp4 || quant == quant_kind::int4_g128;
}

// Whether `in` fits the format's groups (fp8_block takes any; its last block is shorter).
constexpr bool fits_groups(quant_kind quant, std::uint32_t in) noexcept {
  const std::uint32_t group = group_columns(quant);
  return group == 0 || quant == quant_kind::fp8_block || in % group == 0;
}

// Where the parts of one canonical matrix lie.
struct matrix_form {
  std::size_t codes_bytes = 0;
  std::size_t scales_offset = 0;
  std::size_t scales_bytes = 0;
  std::size_t second_offset = 0;  // of s2; only nvfp4
  std::size_t bytes = 0;          // of the whole

  bool operator==(const matrix_form&) const = default;
};

// Requires: fits_groups(quant, in).
matrix_form matrix_form_of(const weight_format& format, std::uint32_t out,
                           std::uint32_t in) noexcept;

}  // namespace moetier
