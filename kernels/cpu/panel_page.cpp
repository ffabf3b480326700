#include "kernels/cpu/panel_page.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/limits.hpp"
#include "kernels/tensor_values.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t k_lanes = 8;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

constexpr std::uint32_t divided_up(std::uint32_t a, std::uint32_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

// 8 neighbouring rows of a checkpoint matrix: one half of a panel.
struct half_panel {
  std::span<const std::byte> matrix;
  std::size_t first_row;
  std::size_t rows;  // of the matrix that exist here, 0..8

  half_panel(std::span<const std::byte> m, std::size_t first, std::size_t total) noexcept
      : matrix(m), first_row(first), rows(first < total ? std::min(k_lanes, total - first) : 0) {}
};

// Rows are read along K in pieces that stay in the cache, so that a page is written once, in order.
constexpr std::size_t k_piece = 64;

void pack_bf16(const half_panel& low, const half_panel& high, std::size_t depth, std::byte* out) {
  for (std::size_t first = 0; first < depth; first += k_piece) {
    const std::size_t steps = std::min(k_piece, depth - first);
    std::uint32_t words[k_piece][k_lanes] = {};
    const auto place = [&](const half_panel& half, unsigned shift) {
      for (std::size_t lane = 0; lane < half.rows; ++lane) {
        const std::size_t at = (half.first_row + lane) * depth + first;
        for (std::size_t k = 0; k < steps; ++k)
          words[k][lane] |= std::uint32_t{bits16_at(half.matrix, at + k)} << shift;
      }
    };
    place(low, 0);
    place(high, 16);
    std::memcpy(out + first * sizeof words[0], words, steps * sizeof words[0]);
  }
}

void pack_f32(const half_panel& low, const half_panel& high, dtype stored, std::size_t depth,
              std::byte* out) {
  for (std::size_t first = 0; first < depth; first += k_piece) {
    const std::size_t steps = std::min(k_piece, depth - first);
    float values[k_piece][2 * k_lanes] = {};
    const auto place = [&](const half_panel& half, std::size_t column) {
      for (std::size_t lane = 0; lane < half.rows; ++lane) {
        const std::size_t at = (half.first_row + lane) * depth + first;
        for (std::size_t k = 0; k < steps; ++k)
          values[k][column + lane] = value_at(half.matrix, stored, at + k);
      }
    };
    place(low, 0);
    place(high, k_lanes);
    std::memcpy(out + first * sizeof values[0], values, steps * sizeof values[0]);
  }
}

}  // namespace

panel_page::panel_page(const expert_shape& shape) noexcept
    : shape_(shape),
      format_(shape.format.stored == dtype::bf16 ? panel_format::bf16 : panel_format::f32) {
  MOETIER_ASSERT(shape.hidden_size > 0 && shape.intermediate_size > 0);
  fc1_.depth = shape.hidden_size;
  fc1_.panels = divided_up(shape.intermediate_size, k_fc1_panel_units);
  fc1_.panel_bytes = fc1_.depth * depth_bytes();
  fc2_.depth = shape.intermediate_size;
  fc2_.panels = divided_up(shape.hidden_size, k_panel_columns);
  fc2_.panel_bytes = fc2_.depth * depth_bytes();
  fc2_.offset_bytes = aligned(fc1_.end_bytes());
  bytes_ = aligned(fc2_.end_bytes());
}

std::string_view panel_page::layout_id() const noexcept {
  return format_ == panel_format::bf16 ? "panel16.bf16" : "panel16.f32";
}

std::size_t panel_page::depth_bytes() const noexcept {
  return k_panel_columns * (format_ == panel_format::bf16 ? 2 : 4);
}

void panel_page::pack(const expert_tensors& tensors, std::span<std::byte> page) const {
  const std::size_t hidden = shape_.hidden_size;
  const std::size_t units = shape_.intermediate_size;
  const std::size_t matrix_bytes = hidden * units * dtype_bytes(shape_.format.stored);
  MOETIER_ASSERT(page.size() == bytes_);
  MOETIER_ASSERT(tensors.gate.size() == matrix_bytes && tensors.up.size() == matrix_bytes &&
                 tensors.down.size() == matrix_bytes);
  const auto pack_panel = [&](const panel_strip& strip, std::size_t panel, const half_panel& low,
                              const half_panel& high) {
    std::byte* out = page.data() + strip.offset_bytes + panel * strip.panel_bytes;
    if (format_ == panel_format::bf16)
      pack_bf16(low, high, strip.depth, out);
    else
      pack_f32(low, high, shape_.format.stored, strip.depth, out);
  };
  for (std::size_t p = 0; p < fc1_.panels; ++p)
    pack_panel(fc1_, p, {tensors.gate, p * k_fc1_panel_units, units},
               {tensors.up, p * k_fc1_panel_units, units});
  for (std::size_t p = 0; p < fc2_.panels; ++p)
    pack_panel(fc2_, p, {tensors.down, p * k_panel_columns, hidden},
               {tensors.down, p * k_panel_columns + k_lanes, hidden});
  std::fill(page.begin() + static_cast<std::ptrdiff_t>(fc1_.end_bytes()),
            page.begin() + static_cast<std::ptrdiff_t>(fc2_.offset_bytes), std::byte{0});
  std::fill(page.begin() + static_cast<std::ptrdiff_t>(fc2_.end_bytes()), page.end(), std::byte{0});
}

}  // namespace moetier::kernels
