#include "kernels/cuda/sm90_page.hpp"

#include <cstring>
#include <limits>

#include "kernels/reference/canonical_page.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr std::size_t k_chunk_bytes = 16;  // what the swizzle moves as one

// One row of a strip: its blocks of K go to the tiles of the strip, a tile apart.
void scatter_row(const std::byte* from, std::uint32_t blocks, std::uint32_t row_in_tile,
                 std::byte* strip) {
  for (std::uint32_t block = 0; block < blocks; ++block) {
    std::byte* const tile = strip + std::size_t{block} * k_tile_bytes;
    for (std::uint32_t b = 0; b < k_tile_row_bytes; b += k_chunk_bytes, from += k_chunk_bytes)
      std::memcpy(tile + swizzled(row_in_tile, b), from, k_chunk_bytes);
  }
}

void scatter_matrix(const std::byte* from, std::size_t row_bytes, std::uint32_t rows,
                    std::uint32_t blocks, std::uint32_t (*page_row_of)(std::uint32_t),
                    std::byte* to) {
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::uint32_t n = page_row_of(r);
    std::byte* const strip = to + std::size_t{n / k_tile_rows} * blocks * k_tile_bytes;
    scatter_row(from + r * row_bytes, blocks, n % k_tile_rows, strip);
  }
}

std::uint32_t same_row(std::uint32_t r) { return r; }
std::uint32_t gate_row(std::uint32_t r) { return gate_page_row(r); }
std::uint32_t up_row(std::uint32_t r) { return up_page_row(r); }

// Rows of f32 scales, each at a multiple of `pitch` floats. The bytes may lie anywhere.
void pad_scales(const std::byte* from, std::size_t rows, std::size_t columns, std::size_t pitch,
                std::byte* to) {
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(to + r * pitch * sizeof(float), from + r * columns * sizeof(float),
                columns * sizeof(float));
}

void put_float(std::byte* to, std::size_t index, float value) {
  std::memcpy(to + index * sizeof value, &value, sizeof value);
}

}  // namespace

gemm_shape gemm_shape_of(const expert_shape& shape) noexcept {
  const bool fp8 = shape.format.quant == quant_kind::fp8_block;
  return {.hidden_size = shape.hidden_size,
          .intermediate_size = shape.intermediate_size,
          .format = fp8 ? gemm_format::fp8 : gemm_format::bf16,
          .bias = shape.bias};
}

sm90_page::sm90_page(const expert_shape& shape)
    : shape_(shape),
      gemm_(gemm_shape_of(shape)),
      layout_(page_layout_of(gemm_)),
      layout_id_(layout_name("sm90tiles", dtype_name(shape.format.stored), shape)) {
  MOETIER_ASSERT(shape.format.quant == quant_kind::fp8_block ||
                 (shape.format.quant == quant_kind::none && shape.format.stored == dtype::bf16));
  MOETIER_ASSERT(is_gated(shape.activation));
  const std::uint32_t columns = columns_of_block(gemm_.format);
  MOETIER_ASSERT(shape.hidden_size % columns == 0 && shape.intermediate_size % columns == 0);
}

void sm90_page::pack(const expert_tensors& tensors, std::span<std::byte> page) const {
  MOETIER_ASSERT(page.size() == layout_.bytes);
  // Strips that the last rows do not fill, and what lies behind the tiles.
  const auto clear_tail = [&](std::uint64_t at, std::uint32_t strips, std::uint32_t blocks,
                              std::uint32_t rows) {
    if (rows % k_tile_rows == 0) return;
    const std::size_t strip_bytes = std::size_t{blocks} * k_tile_bytes;
    std::memset(page.data() + at + (strips - 1) * strip_bytes, 0, strip_bytes);
  };
  clear_tail(layout_.fc1, layout_.fc1_strips, layout_.fc1_blocks, 2 * shape_.intermediate_size);
  clear_tail(layout_.fc2, layout_.fc2_strips, layout_.fc2_blocks, shape_.hidden_size);
  std::memset(page.data() + layout_.scales1, 0, layout_.bytes - layout_.scales1);

  pack_fc1(tensors, page.data() + layout_.fc1);
  pack_fc2(tensors, page.data() + layout_.fc2);
  if (gemm_.format == gemm_format::fp8) pack_scales(tensors, page.data());
  if (gemm_.bias) pack_biases(tensors, page.data());
  const float limit = tensors.constants.limit > 0 ? tensors.constants.limit
                                                  : std::numeric_limits<float>::infinity();
  std::byte* const constants = page.data() + layout_.constants;
  put_float(constants, 0, tensors.constants.alpha);
  put_float(constants, 1, tensors.constants.beta);
  put_float(constants, 2, limit);
}

void sm90_page::pack_fc1(const expert_tensors& t, std::byte* to) const {
  const std::size_t row_bytes = std::size_t{layout_.fc1_blocks} * k_tile_row_bytes;
  const std::uint32_t rows = shape_.intermediate_size;
  scatter_matrix(t.gate.data(), row_bytes, rows, layout_.fc1_blocks, gate_row, to);
  scatter_matrix(t.up.data(), row_bytes, rows, layout_.fc1_blocks, up_row, to);
}

void sm90_page::pack_fc2(const expert_tensors& t, std::byte* to) const {
  const std::size_t row_bytes = std::size_t{layout_.fc2_blocks} * k_tile_row_bytes;
  scatter_matrix(t.down.data(), row_bytes, shape_.hidden_size, layout_.fc2_blocks, same_row, to);
}

void sm90_page::pack_scales(const expert_tensors& t, std::byte* page) const {
  const matrix_form wide =
      matrix_form_of(shape_.format, shape_.intermediate_size, shape_.hidden_size);
  const matrix_form narrow =
      matrix_form_of(shape_.format, shape_.hidden_size, shape_.intermediate_size);
  const std::size_t rows1 = shape_.intermediate_size / 128;
  std::byte* const scales1 = page + layout_.scales1;
  pad_scales(t.gate.data() + wide.scales_offset, rows1, layout_.fc1_blocks, layout_.scale_pitch1,
             scales1);
  pad_scales(t.up.data() + wide.scales_offset, rows1, layout_.fc1_blocks, layout_.scale_pitch1,
             scales1 + rows1 * layout_.scale_pitch1 * sizeof(float));
  pad_scales(t.down.data() + narrow.scales_offset, shape_.hidden_size / 128, layout_.fc2_blocks,
             layout_.scale_pitch2, page + layout_.scales2);
}

void sm90_page::pack_biases(const expert_tensors& t, std::byte* page) const {
  for (std::uint32_t i = 0; i < shape_.intermediate_size; ++i) {
    put_float(page + layout_.bias1, gate_page_row(i), t.gate_bias[i]);
    put_float(page + layout_.bias1, up_page_row(i), t.up_bias[i]);
  }
  std::memcpy(page + layout_.bias2, t.down_bias.data(), t.down_bias.size_bytes());
}

}  // namespace moetier::kernels::cuda
