#include "kernels/reference/canonical_page.hpp"

#include <cstring>

#include <fmt/core.h>

#include "kernels/limits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

}  // namespace

canonical_page::canonical_page(const expert_shape& shape) noexcept {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  MOETIER_ASSERT(fits_groups(shape.format.quant, hidden) && fits_groups(shape.format.quant, units));
  const auto place = [&](part& p, std::size_t bytes) {
    p = {.offset = bytes_, .bytes = bytes};
    bytes_ += aligned(bytes);
  };
  const std::size_t first = matrix_form_of(shape.format, units, hidden).bytes;
  const bool gate = is_gated(shape.activation);
  const std::size_t unit_bias = shape.bias ? units * sizeof(float) : 0;
  place(parts_.gate, gate ? first : 0);
  place(parts_.up, first);
  place(parts_.down, matrix_form_of(shape.format, hidden, units).bytes);
  place(parts_.gate_bias, gate ? unit_bias : 0);
  place(parts_.up_bias, unit_bias);
  place(parts_.down_bias, shape.bias ? hidden * sizeof(float) : 0);
  place(parts_.constants, sizeof(activation_constants));
}

void canonical_page::pack(const expert_tensors& tensors, std::span<std::byte> page) const {
  MOETIER_ASSERT(page.size() == bytes_);
  const auto copy = [&](const part& p, std::span<const std::byte> from) {
    MOETIER_ASSERT(from.size() == p.bytes);
    if (p.bytes == 0) return;
    std::memcpy(page.data() + p.offset, from.data(), p.bytes);
    std::memset(page.data() + p.offset + p.bytes, 0, aligned(p.bytes) - p.bytes);
  };
  copy(parts_.gate, tensors.gate);
  copy(parts_.up, tensors.up);
  copy(parts_.down, tensors.down);
  copy(parts_.gate_bias, std::as_bytes(tensors.gate_bias));
  copy(parts_.up_bias, std::as_bytes(tensors.up_bias));
  copy(parts_.down_bias, std::as_bytes(tensors.down_bias));
  copy(parts_.constants, std::as_bytes(std::span(&tensors.constants, 1)));
}

expert_tensors canonical_page::tensors(const std::byte* page) const noexcept {
  const auto bytes = [&](const part& p) { return std::span(page + p.offset, p.bytes); };
  const auto floats = [&](const part& p) {
    return std::span(reinterpret_cast<const float*>(page + p.offset), p.bytes / sizeof(float));
  };
  expert_tensors tensors{.gate = bytes(parts_.gate),
                         .up = bytes(parts_.up),
                         .down = bytes(parts_.down),
                         .gate_bias = floats(parts_.gate_bias),
                         .up_bias = floats(parts_.up_bias),
                         .down_bias = floats(parts_.down_bias)};
  std::memcpy(&tensors.constants, page + parts_.constants.offset, sizeof tensors.constants);
  return tensors;
}

std::string layout_name(std::string_view first, std::string_view plain, const expert_shape& shape) {
  const quant_kind quant = shape.format.quant;
  const std::string_view format = quant == quant_kind::none ? plain : quant_name(quant);
  return fmt::format("{}.{}{}{}", first, format, is_gated(shape.activation) ? "" : ".ungated",
                     shape.bias ? ".bias" : "");
}

}  // namespace moetier::kernels
