#pragma once
// Panel page: how the CPU's vector kernels keep one expert: the strip of FC1 (panel_strip.hpp;
// gates beside ups where there are gates), the strip of FC2, biases of FC1 and FC2 as f32
// [panels][16], the activation's constants (limit +inf where there is none). Made by a backend for
// its shape; it owns no page. Thread: any (an immutable value).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"
#include "kernels/cpu/panel_strip.hpp"

namespace moetier::kernels {

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

}  // namespace moetier::kernels
