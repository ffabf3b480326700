#pragma once
// Panel page: how the CPU's vector kernels keep one expert. A panel holds 16 outputs over the whole
// depth K as [K][8] pairs (low, high): bf16 pairs share a 32-bit word, low half and high half, so
// that a shift and a mask give both as f32; f32 pairs lie as 8 lows, then 8 highs. FC1 panels pair
// 8 gates (low) with their 8 ups (high), so the activation needs no data from elsewhere; FC2 panels
// pair columns j and j + 8. Panels of FC1, then those of FC2, in ascending order, each part aligned
// to 64 bytes; units beyond I, columns beyond H and padding are zeros. K is never padded. f16
// checkpoints are stored as f32 panels, exactly.
// Made by a backend for its shape; it owns no page. Thread: any (an immutable value).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/backend.hpp"

namespace moetier::kernels {

enum class panel_format : std::uint8_t { bf16, f32 };

// The panels of one matrix product.
struct panel_strip {
  std::size_t offset_bytes = 0;  // of the first panel in the page
  std::size_t panel_bytes = 0;
  std::uint32_t panels = 0;
  std::uint32_t depth = 0;  // K

  constexpr std::size_t end_bytes() const noexcept { return offset_bytes + panels * panel_bytes; }
};

class panel_page final {
 public:
  // Requires: H, I >= 1; stored is bf16, f16 or f32.
  explicit panel_page(const expert_shape& shape) noexcept;

  panel_format format() const noexcept { return format_; }
  std::string_view layout_id() const noexcept;
  const panel_strip& fc1() const noexcept { return fc1_; }
  const panel_strip& fc2() const noexcept { return fc2_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t depth_bytes() const noexcept;  // of a panel, per step of K

  // Writes every byte of `page`. Requires: page.size() == bytes(); tensors of the shape.
  void pack(const expert_tensors& tensors, std::span<std::byte> page) const;

 private:
  expert_shape shape_;
  panel_format format_;
  panel_strip fc1_;
  panel_strip fc2_;
  std::size_t bytes_ = 0;
};

}  // namespace moetier::kernels
