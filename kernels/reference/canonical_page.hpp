#pragma once
// Canonical page: one expert as the loader gives it, part after part: gate (where there is one),
// up, down in canonical bytes, the biases as f32, the activation's constants; each part at the next
// multiple of 64, padding zeros. The page of cpu_ref and of the oracle. Thread: any (a value).

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/backend.hpp"

namespace moetier::kernels {

class canonical_page final {
 public:
  struct part {
    std::size_t offset = 0;
    std::size_t bytes = 0;  // 0 = the shape has none
  };
  struct parts {
    part gate, up, down, gate_bias, up_bias, down_bias, constants;
  };

  // Requires: a shape whose H and I fit the format's groups.
  explicit canonical_page(const expert_shape& shape) noexcept;

  std::size_t bytes() const noexcept { return bytes_; }
  const parts& where() const noexcept { return parts_; }
  // Writes every byte. Requires: page.size() == bytes(); tensors of the shape.
  void pack(const expert_tensors& tensors, std::span<std::byte> page) const;
  // Spans into the page, which outlives them.
  expert_tensors tensors(const std::byte* page) const noexcept;

 private:
  parts parts_;
  std::size_t bytes_ = 0;
};

// "canonical.bf16", "canonical.fp8_block.ungated.bias": format, then what is not usual. `plain`
// names the elements of unquantised pages.
std::string layout_name(std::string_view first, std::string_view plain, const expert_shape& shape);

}  // namespace moetier::kernels
