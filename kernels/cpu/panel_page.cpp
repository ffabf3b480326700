#include "kernels/cpu/panel_page.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/activation/activate.hpp"
#include "kernels/limits.hpp"
#include "kernels/matrix_view.hpp"
#include "kernels/reference/canonical_page.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t k_lanes = 8;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

}  // namespace

panel_page::panel_page(const expert_shape& shape)
    : shape_(shape),
      layout_id_(
          layout_name("panels16", shape.format.stored == dtype::bf16 ? "bf16" : "f32", shape)) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  MOETIER_ASSERT(hidden > 0 && units > 0);
  MOETIER_ASSERT(fits_groups(shape.format.quant, hidden) && fits_groups(shape.format.quant, units));
  lay_out(fc1_, units, is_gated(shape.activation) ? k_fc1_panel_units : k_panel_columns, hidden);
  lay_out(fc2_, hidden, k_panel_columns, units);
  for (panel_strip* strip : {&fc1_, &fc2_}) {
    if (!shape.bias) continue;
    strip->bias_bytes = bytes_;
    bytes_ += strip->panels * k_panel_columns * sizeof(float);
  }
  constants_offset_ = bytes_;
  bytes_ += aligned(sizeof(activation_constants));
}

void panel_page::lay_out(panel_strip& strip, std::uint32_t outputs, std::uint32_t units,
                         std::uint32_t depth) noexcept {
  strip = strip_of(shape_.format, outputs, units, depth);
  strip.offset_bytes = bytes_;
  bytes_ = aligned(strip.end_bytes());
}

void panel_page::pack(const expert_tensors& tensors, std::span<std::byte> page) const {
  const std::uint32_t hidden = shape_.hidden_size;
  const std::uint32_t units = shape_.intermediate_size;
  const bool has_gate = is_gated(shape_.activation);
  MOETIER_ASSERT(page.size() == bytes_);
  const matrix_view up(shape_.format, tensors.up, units, hidden);
  const matrix_view gate = has_gate ? matrix_view(shape_.format, tensors.gate, units, hidden) : up;
  const matrix_view down(shape_.format, tensors.down, hidden, units);
  if (has_gate) {
    pack_pairs(fc1_, shape_.format, gate, up, page.data() + fc1_.offset_bytes);
  } else {
    pack_neighbours(fc1_, shape_.format, up, page.data() + fc1_.offset_bytes);
  }
  pack_neighbours(fc2_, shape_.format, down, page.data() + fc2_.offset_bytes);
  for (const panel_strip* strip : {&fc1_, &fc2_})
    std::memset(page.data() + strip->end_bytes(), 0,
                aligned(strip->end_bytes()) - strip->end_bytes());

  // Lows from `low`, highs from `high` at the same unit plus high_first.
  const auto pack_bias = [&](const panel_strip& strip, std::span<const float> low,
                             std::span<const float> high, std::size_t high_first) {
    float* out = reinterpret_cast<float*>(page.data() + strip.bias_bytes);
    std::fill_n(out, strip.panels * k_panel_columns, 0.0F);
    for (std::size_t p = 0; p < strip.panels; ++p, out += k_panel_columns) {
      for (std::size_t lane = 0; lane < k_lanes; ++lane) {
        const std::size_t i = p * strip.units + lane;
        if (i < low.size()) out[lane] = low[i];
        if (i + high_first < high.size()) out[k_lanes + lane] = high[i + high_first];
      }
    }
  };
  if (shape_.bias) {
    MOETIER_ASSERT(tensors.up_bias.size() == units && tensors.down_bias.size() == hidden &&
                   tensors.gate_bias.size() == (has_gate ? units : 0));
    if (has_gate)
      pack_bias(fc1_, tensors.gate_bias, tensors.up_bias, 0);
    else
      pack_bias(fc1_, tensors.up_bias, tensors.up_bias, k_lanes);
    pack_bias(fc2_, tensors.down_bias, tensors.down_bias, k_lanes);
  }
  activation_constants constants = tensors.constants;
  constants.limit = clamp_limit(constants);
  std::memset(page.data() + constants_offset_, 0, bytes_ - constants_offset_);
  std::memcpy(page.data() + constants_offset_, &constants, sizeof constants);
}

}  // namespace moetier::kernels
