#pragma once
// Panel page: how the CPU's vector kernels keep one expert. A panel holds 16 outputs over the whole
// depth K: 8 lows and 8 highs. FC1 panels pair 8 gates (low) with their 8 ups (high), so the
// activation needs no data from elsewhere; without a gate, and in FC2, they hold 16 neighbouring
// outputs, j and j + 8. A panel is its codes, then its scales, each part aligned to 64 bytes.
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
// (nvfp4), bf16 (int4_g128). Panels of FC1, then those of FC2, biases of FC1 and FC2 as f32
// [panels][16], the activation's constants (limit +inf where there is none). Outputs that do not
// exist have the value zero; padding is zeros. K is not padded otherwise.
// Made by a backend for its shape; it owns no page. Thread: any (an immutable value).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"

namespace moetier::kernels {

// The panels of one matrix product.
struct panel_strip {
  std::size_t offset_bytes = 0;  // of the first panel in the page
  std::size_t panel_bytes = 0;
  std::size_t step_bytes = 0;    // of codes, per step of K
  std::size_t scales_bytes = 0;  // offset of the scales in a panel; panel_bytes where none
  std::size_t bias_bytes = 0;    // offset of [panels][16] biases in the page; 0 = no biases
  std::uint32_t panels = 0;
  std::uint32_t units =
      0;  // outputs of a panel that the next stage sees: 8 of a gated FC1, else 16
  std::uint32_t depth = 0;  // K

  constexpr std::size_t end_bytes() const noexcept { return offset_bytes + panels * panel_bytes; }
};

class panel_page final {
 public:
  // Requires: H, I >= 1 that fit the format's groups; stored is bf16, f16 or f32.
  explicit panel_page(const expert_shape& shape);

  std::string_view layout_id() const noexcept { return layout_id_; }
  const panel_strip& fc1() const noexcept { return fc1_; }
  const panel_strip& fc2() const noexcept { return fc2_; }
  std::size_t constants_offset() const noexcept { return constants_offset_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // Writes every byte of `page`. Requires: page.size() == bytes(); tensors of the shape.
  void pack(const expert_tensors& tensors, std::span<std::byte> page) const;

 private:
  void lay_out(panel_strip& strip, std::uint32_t outputs, std::uint32_t units,
               std::uint32_t depth) noexcept;

  expert_shape shape_;
  panel_strip fc1_;
  panel_strip fc2_;
  std::size_t constants_offset_ = 0;
  std::size_t bytes_ = 0;
  std::string layout_id_;
};

// Bytes of a panel's scales over `depth` steps of K; 0 where the format has none.
std::size_t panel_scales_bytes(quant_kind quant, std::size_t depth) noexcept;

}  // namespace moetier::kernels
