#include "kernels/cpu/panel_gemm.hpp"

#include <algorithm>
#include <cstring>

#include "schemas/base/assert.hpp"

namespace moetier::kernels {

panel_gemm::panel_gemm(const panel_kernels& kernels, const weight_format& format,
                       std::uint32_t outputs, std::uint32_t depth) noexcept
    : kernels_(kernels),
      product_(kernels, format),
      format_(format),
      outputs_(outputs),
      strip_(strip_of(format, outputs, k_panel_columns, depth)) {}

std::size_t panel_gemm::workspace_bytes(std::uint32_t rows) const noexcept {
  const std::size_t expanded = product_.quantised() ? k_panel_expanded_floats : 0;
  return (k_panel_sums_floats + expanded + std::size_t{rows} * strip_.depth) * sizeof(float);
}

void panel_gemm::pack(std::span<const std::byte> matrix, std::span<std::byte> panels) const {
  MOETIER_ASSERT(panels.size() == weight_bytes());
  pack_neighbours(strip_, format_, matrix_view(format_, matrix, outputs_, strip_.depth),
                  panels.data());
}

void panel_gemm::run(const std::byte* panels, const float* rows, std::uint32_t count, float* out,
                     std::span<std::byte> workspace) const noexcept {
  MOETIER_ASSERT(count >= 1 && count <= k_block_rows_max);
  MOETIER_ASSERT(workspace.size() >= workspace_bytes(count));
  auto* const sums = reinterpret_cast<float*>(workspace.data());
  float* const expanded = sums + k_panel_sums_floats;
  float* const packed = expanded + (product_.quantised() ? k_panel_expanded_floats : 0);
  wave_tile tiles[k_block_rows_max];
  const std::uint32_t tile_count = cut_tiles(0, count, tiles);
  for (const wave_tile& tile : std::span(tiles).first(tile_count)) {
    const float* of_tile[k_tile_rows_max];
    for (std::uint32_t r = 0; r < tile.rows; ++r)
      of_tile[r] = rows + std::size_t{tile.first_row + r} * strip_.depth;
    kernels_.rows->interleave(of_tile, tile.rows, strip_.depth,
                              packed + std::size_t{tile.first_row} * strip_.depth);
  }
  const auto at = [&](std::uint32_t panel, std::uint32_t row) {
    return out + std::size_t{row} * outputs_ + std::size_t{panel} * k_panel_columns;
  };
  const auto expect = [&](std::uint32_t panel, const wave_tile& tile) {
    for (std::uint32_t r = 0; r < tile.rows; ++r)
      __builtin_prefetch(at(panel, tile.first_row + r), 1);
  };
  const auto take = [&](std::uint32_t panel, const wave_tile& tile, const float* of_panel) {
    const std::size_t columns =
        std::min<std::size_t>(k_panel_columns, outputs_ - panel * k_panel_columns);
    for (std::uint32_t r = 0; r < tile.rows; ++r)
      std::memcpy(at(panel, tile.first_row + r), of_panel + r * k_panel_columns,
                  columns * sizeof(float));
  };
  product_.multiply({.strip = strip_,
                     .page = panels,
                     .tiles = std::span(tiles).first(tile_count),
                     .rows = packed,
                     .row_floats = strip_.depth,
                     .range = {0, strip_.panels},
                     .sums = sums,
                     .expanded = expanded},
                    panel_sink{expect, take});
}

}  // namespace moetier::kernels
