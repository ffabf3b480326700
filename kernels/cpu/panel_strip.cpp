#include "kernels/cpu/panel_strip.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/limits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t k_lanes = 8;
// Rows are read along K in pieces that stay in the cache, so that panels are written once, in
// order.
constexpr std::size_t k_piece = 64;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

constexpr std::size_t step_bytes_of(const weight_format& format) noexcept {
  if (format.quant == quant_kind::none) return format.stored == dtype::bf16 ? 32 : 64;
  return is_four_bit(format.quant) ? 8 : 16;
}

constexpr std::size_t scale_bytes_of(quant_kind quant) noexcept {
  switch (quant) {
    case quant_kind::none: return 0;
    case quant_kind::fp8_tensor:
    case quant_kind::fp8_block: return 4;
    case quant_kind::int4_g128: return 2;
    default: return 1;
  }
}

constexpr std::size_t groups_of(quant_kind quant, std::size_t depth) noexcept {
  const std::size_t group = group_columns(quant);
  return group == 0 ? 1 : (depth + group - 1) / group;
}

// The code that stands for zero where an output does not exist.
constexpr std::uint8_t zero_code(quant_kind quant) noexcept {
  return quant == quant_kind::int4_g128 ? 8 : 0;
}

// 8 neighbouring outputs of a matrix: one half of a panel.
struct half_panel {
  const matrix_view* matrix;
  std::size_t first_row;
  std::size_t rows;  // of the matrix that exist here, 0..8

  half_panel(const matrix_view& m, std::size_t first) noexcept
      : matrix(&m),
        first_row(first),
        rows(first < m.out() ? std::min(k_lanes, m.out() - first) : 0) {}
};

struct panel_halves {
  half_panel low;
  half_panel high;
};

// Calls write(first step, steps) for pieces of the depth.
template <class Write>
void each_piece(std::size_t depth, Write&& write) {
  for (std::size_t first = 0; first < depth; first += k_piece)
    write(first, std::min(k_piece, depth - first));
}

void pack_bf16(const panel_halves& p, std::size_t depth, std::byte* out) {
  each_piece(depth, [&](std::size_t first, std::size_t steps) {
    std::uint32_t words[k_piece][k_lanes] = {};
    const auto place = [&](const half_panel& half, unsigned shift) {
      for (std::size_t lane = 0; lane < half.rows; ++lane) {
        const std::byte* row = half.matrix->row(half.first_row + lane) + first * 2;
        for (std::size_t k = 0; k < steps; ++k) {
          std::uint16_t bits = 0;
          std::memcpy(&bits, row + k * sizeof bits, sizeof bits);
          words[k][lane] |= std::uint32_t{bits} << shift;
        }
      }
    };
    place(p.low, 0);
    place(p.high, 16);
    std::memcpy(out + first * sizeof words[0], words, steps * sizeof words[0]);
  });
}

void pack_f32(const panel_halves& p, std::size_t depth, std::byte* out) {
  each_piece(depth, [&](std::size_t first, std::size_t steps) {
    float values[k_piece][2 * k_lanes] = {};
    const auto place = [&](const half_panel& half, std::size_t column) {
      for (std::size_t lane = 0; lane < half.rows; ++lane) {
        for (std::size_t k = 0; k < steps; ++k)
          values[k][column + lane] = half.matrix->value(half.first_row + lane, first + k);
      }
    };
    place(p.low, 0);
    place(p.high, k_lanes);
    std::memcpy(out + first * sizeof values[0], values, steps * sizeof values[0]);
  });
}

// Words of two steps: byte [step / 2][column][step % 2]. The steps of a last odd pair are zeros.
void pack_bytes(const panel_halves& p, std::size_t depth, std::byte* out) {
  each_piece(depth, [&](std::size_t first, std::size_t steps) {
    std::byte codes[k_piece / 2][2 * k_lanes][2] = {};
    const auto place = [&](const half_panel& half, std::size_t column) {
      for (std::size_t lane = 0; lane < half.rows; ++lane) {
        const std::byte* row = half.matrix->row(half.first_row + lane) + first;
        for (std::size_t k = 0; k < steps; ++k) codes[k / 2][column + lane][k % 2] = row[k];
      }
    };
    place(p.low, 0);
    place(p.high, k_lanes);
    std::memcpy(out + first / 2 * sizeof codes[0], codes, (steps + 1) / 2 * sizeof codes[0]);
  });
}

// Quads of steps: byte [step / 4][lane / 4][step % 4][lane % 4], low and high in its nibbles.
// Requires: the depth is a multiple of 4.
void pack_nibbles(const panel_halves& p, std::uint8_t zero, std::size_t depth, std::byte* out) {
  each_piece(depth, [&](std::size_t first, std::size_t steps) {
    std::uint8_t codes[k_piece / 4][2][4][4];
    std::memset(codes, 0, sizeof codes);
    const auto place = [&](const half_panel& half, unsigned shift) {
      for (std::size_t lane = 0; lane < k_lanes; ++lane) {
        const std::byte* row =
            lane < half.rows ? half.matrix->row(half.first_row + lane) + first / 2 : nullptr;
        for (std::size_t k = 0; k < steps; k += 2) {
          const unsigned pair =
              row != nullptr ? std::to_integer<unsigned>(row[k / 2]) : zero * 0x11u;
          auto& at = codes[k / 4][lane / 4];
          at[k % 4][lane % 4] |= static_cast<std::uint8_t>((pair & 15u) << shift);
          at[k % 4 + 1][lane % 4] |= static_cast<std::uint8_t>(pair >> 4 << shift);
        }
      }
    };
    place(p.low, 0);
    place(p.high, 4);
    std::memcpy(out + first / 4 * sizeof codes[0], codes, steps / 4 * sizeof codes[0]);
  });
}

// Requires: the scales' bytes are zeros.
void pack_scales(const panel_halves& p, quant_kind quant, std::size_t depth, std::byte* out) {
  const auto place = [&](const half_panel& half, std::size_t column) {
    if (half.rows == 0) return;
    std::byte* at = out;
    if (quant == quant_kind::nvfp4) {
      const float second = half.matrix->second_scale();
      for (std::size_t lane = 0; lane < half.rows; ++lane)
        std::memcpy(at + (column + lane) * sizeof second, &second, sizeof second);
      at += 2 * k_lanes * sizeof second;
    }
    const std::size_t bytes = scale_bytes_of(quant);
    for (std::size_t g = 0; g < groups_of(quant, depth); ++g) {
      for (std::size_t lane = 0; lane < half.rows; ++lane) {
        const std::uint32_t bits = half.matrix->scale_bits(half.first_row + lane, g);
        std::memcpy(at + (g * 2 * k_lanes + column + lane) * bytes, &bits, bytes);
      }
    }
  };
  place(p.low, 0);
  place(p.high, k_lanes);
}

void pack_panel(const panel_strip& strip, const weight_format& format, const panel_halves& halves,
                std::byte* out) {
  if (format.quant != quant_kind::none) {
    std::memset(out, 0, strip.panel_bytes);
    if (is_four_bit(format.quant))
      pack_nibbles(halves, zero_code(format.quant), strip.depth, out);
    else
      pack_bytes(halves, strip.depth, out);
    pack_scales(halves, format.quant, strip.depth, out + strip.scales_bytes);
  } else if (format.stored == dtype::bf16) {
    pack_bf16(halves, strip.depth, out);
  } else {
    pack_f32(halves, strip.depth, out);
  }
}

}  // namespace

std::size_t panel_scales_bytes(quant_kind quant, std::size_t depth) noexcept {
  const std::size_t second = quant == quant_kind::nvfp4 ? k_panel_columns * sizeof(float) : 0;
  return second + groups_of(quant, depth) * k_panel_columns * scale_bytes_of(quant);
}

panel_strip strip_of(const weight_format& format, std::uint32_t outputs, std::uint32_t units,
                     std::uint32_t depth) noexcept {
  panel_strip strip{.step_bytes = step_bytes_of(format),
                    .panels = outputs / units + (outputs % units != 0 ? 1 : 0),
                    .units = units,
                    .depth = depth};
  strip.panel_bytes = depth * strip.step_bytes;
  strip.scales_bytes = strip.panel_bytes;
  if (format.quant != quant_kind::none) {
    strip.scales_bytes = aligned(strip.panel_bytes);  // room for an odd step, too
    strip.panel_bytes = strip.scales_bytes + aligned(panel_scales_bytes(format.quant, depth));
  }
  return strip;
}

void pack_pairs(const panel_strip& strip, const weight_format& format, const matrix_view& gate,
                const matrix_view& up, std::byte* panels) {
  for (std::size_t p = 0; p < strip.panels; ++p) {
    const std::size_t unit = p * k_fc1_panel_units;
    pack_panel(strip, format, {{gate, unit}, {up, unit}}, panels + p * strip.panel_bytes);
  }
}

void pack_neighbours(const panel_strip& strip, const weight_format& format,
                     const matrix_view& matrix, std::byte* panels) {
  for (std::size_t p = 0; p < strip.panels; ++p) {
    const std::size_t output = p * k_panel_columns;
    pack_panel(strip, format, {{matrix, output}, {matrix, output + k_lanes}},
               panels + p * strip.panel_bytes);
  }
}

}  // namespace moetier::kernels
