#pragma once
// Panel strip: the panels of one matrix product. A panel holds 16 outputs over the whole depth K: 8
// lows and 8 highs. Pairs of matrices put 8 gates (low) beside their 8 ups (high), so an activation
// needs no data from elsewhere; a single matrix has 16 neighbouring outputs, j and j + 8. A panel
// is its codes, then its scales, each part aligned to 64 bytes.
//
//   codes, per step of K                                   scales
//   bf16        8 words: low in the low half, high above   -
//   f32, f16    8 lows, 8 highs as f32                     -
//   8-bit       16 words per two steps: even step below    native type [groups][16]
//   4-bit       32 bytes per four steps, see below         native type [groups][16]
//
// Byte [half][step][j] of four steps of 4-bit codes: low nibble = low 4 * half + j, high nibble =
// the high. An odd last step of 8-bit codes is filled up with zeros.
//
// Scales: f32 (fp8_tensor: one group; fp8_block), UE8M0 (mxfp8, mxfp4), E4M3 after 16 f32 of s2
// (nvfp4), bf16 (int4_g128). Outputs that do not exist have the value zero; padding is zeros. K is
// not padded otherwise. Thread: any (values and pure functions).

#include <cstddef>
#include <cstdint>

#include "kernels/matrix_view.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier::kernels {

struct panel_strip {
  std::size_t offset_bytes = 0;  // of the first panel in the page
  std::size_t panel_bytes = 0;
  std::size_t step_bytes = 0;    // of codes, per step of K
  std::size_t scales_bytes = 0;  // offset of the scales in a panel; panel_bytes where none
  std::size_t bias_bytes = 0;    // offset of [panels][16] biases in the page; 0 = no biases
  std::uint32_t panels = 0;
  std::uint32_t units = 0;  // outputs of a panel that the next stage sees: 8 of pairs, else 16
  std::uint32_t depth = 0;  // K

  constexpr std::size_t end_bytes() const noexcept { return offset_bytes + panels * panel_bytes; }
};

// At offset 0, without biases. Requires: a depth that fits the format's groups; units is 8 or 16.
panel_strip strip_of(const weight_format& format, std::uint32_t outputs, std::uint32_t units,
                     std::uint32_t depth) noexcept;

// Writes every byte of the strip's panels. Requires: matrices [outputs, depth] of the format.
void pack_pairs(const panel_strip& strip, const weight_format& format, const matrix_view& gate,
                const matrix_view& up, std::byte* panels);
void pack_neighbours(const panel_strip& strip, const weight_format& format,
                     const matrix_view& matrix, std::byte* panels);

// Bytes of a panel's scales over `depth` steps of K; 0 where the format has none.
std::size_t panel_scales_bytes(quant_kind quant, std::size_t depth) noexcept;

}  // namespace moetier::kernels
