#pragma once
// How matrices and rows lie in device memory for the sm_90 kernels, as constants and pure functions
// that host and device share. Nothing here calls CUDA.
//
// Weights: a matrix [N, K] is a sequence of tiles of 128 rows x 128 bytes of K, 16 KB each, in
// wgmma's 128-byte swizzle; the tiles of one strip (128 rows) follow each other in ascending K. One
// bulk copy lands an operand, in either orientation.
//
// Activations: the rows of a row tile (kernels/cuda/row_tile.hpp) lie block of K by block of K, 128
// bytes of K each: groups of 8 rows x 128 bytes in the same swizzle, and behind all groups of the
// block, for fp8, 8 f32 scales a group. One bulk copy lands one block.
//
//   byte (row, b) of a 128-byte-wide piece lies at row * 128 + ((b / 16 ^ row % 8) * 16) + b % 16
//
// Thread: any (constants, pure functions).

#include <cstddef>
#include <cstdint>

namespace moetier::kernels::cuda {

enum class gemm_format : std::uint8_t {
  bf16 = 0,
  fp8 = 1,  // E4M3; weights scaled per 128 x 128, rows per 1 x 128, both f32
};

inline constexpr std::uint32_t k_tile_rows = 128;
inline constexpr std::uint32_t k_tile_row_bytes = 128;
inline constexpr std::uint32_t k_tile_bytes = k_tile_rows * k_tile_row_bytes;
inline constexpr std::uint32_t k_unit_strips = 2;  // strips of one unit of work: 256 page rows
inline constexpr std::uint32_t k_unit_rows = k_unit_strips * k_tile_rows;
inline constexpr std::uint32_t k_group_rows = 8;
inline constexpr std::uint32_t k_group_code_bytes = k_group_rows * k_tile_row_bytes;
inline constexpr std::uint32_t k_group_scale_bytes = k_group_rows * 4;
inline constexpr std::uint32_t k_scale_pitch_floats = 4;  // bulk copies are multiples of 16 bytes

constexpr std::uint32_t columns_of_block(gemm_format format) noexcept {
  return format == gemm_format::fp8 ? 128 : 64;
}
// Of 8 rows and one block of K.
constexpr std::uint32_t group_bytes(gemm_format format) noexcept {
  return k_group_code_bytes + (format == gemm_format::fp8 ? k_group_scale_bytes : 0);
}
constexpr std::uint32_t swizzled(std::uint32_t row, std::uint32_t byte) noexcept {
  return row * k_tile_row_bytes + (((byte >> 4) ^ (row & 7u)) << 4) + (byte & 15u);
}

// FC1's page rows are gate and up interleaved by eight: page row 16 * (i / 8) + i % 8 is gate row
// i, eight further is up row i, so both meet in one thread in either orientation of the product.
constexpr std::uint32_t gate_page_row(std::uint32_t i) noexcept { return (i >> 3) * 16 + (i & 7u); }
constexpr std::uint32_t up_page_row(std::uint32_t i) noexcept { return gate_page_row(i) + 8; }

// What the kernels are launched for: one expert's shape.
struct gemm_shape {
  std::uint32_t hidden_size = 0;        // H; bf16: a multiple of 64, fp8: of 128
  std::uint32_t intermediate_size = 0;  // I; likewise
  gemm_format format = gemm_format::bf16;
  bool bias = false;  // bf16 only

  bool operator==(const gemm_shape&) const = default;
};

// Bulk copies that straddle 128-byte lines cost the weight stream 5 %, so pages follow each other
// at multiples of this; a pool's base must lie at one too.
inline constexpr std::uint64_t k_page_alignment_bytes = 1024;

// Where the parts of one expert lie in its page, in bytes; every part at a multiple of 64.
//   scales1  fp8: f32 [2][I / 128][scale_pitch1]: gate, then up; one per 128 of H
//   scales2  fp8: f32 [H / 128][scale_pitch2]; one per 128 of I
//   bias1    f32 [2 I] in page rows of FC1;  bias2  f32 [H]   (only with shape.bias)
//   constants f32 alpha, beta, limit (+inf = no clamp), 0
struct page_layout {
  std::uint32_t fc1_strips = 0;    // ceil(2 I / 128)
  std::uint32_t fc1_blocks = 0;    // of K: H / columns_of_block
  std::uint32_t fc2_strips = 0;    // ceil(H / 128)
  std::uint32_t fc2_blocks = 0;    // I / columns_of_block
  std::uint32_t scale_pitch1 = 0;  // floats; fp8 only
  std::uint32_t scale_pitch2 = 0;
  std::uint64_t fc1 = 0;
  std::uint64_t fc2 = 0;
  std::uint64_t scales1 = 0;
  std::uint64_t scales2 = 0;
  std::uint64_t bias1 = 0;
  std::uint64_t bias2 = 0;
  std::uint64_t constants = 0;
  std::uint64_t bytes = 0;

  bool operator==(const page_layout&) const = default;
};

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return (a + b - 1) / b;
}
constexpr std::uint64_t round_up(std::uint64_t a, std::uint64_t b) noexcept {
  return ceil_div(a, b) * b;
}

constexpr page_layout page_layout_of(const gemm_shape& shape) noexcept {
  const std::uint64_t h = shape.hidden_size;
  const std::uint64_t i = shape.intermediate_size;
  const std::uint32_t columns = columns_of_block(shape.format);
  const bool fp8 = shape.format == gemm_format::fp8;
  page_layout l;
  l.fc1_strips = static_cast<std::uint32_t>(ceil_div(2 * i, k_tile_rows));
  l.fc1_blocks = static_cast<std::uint32_t>(h / columns);
  l.fc2_strips = static_cast<std::uint32_t>(ceil_div(h, k_tile_rows));
  l.fc2_blocks = static_cast<std::uint32_t>(i / columns);
  l.scale_pitch1 =
      fp8 ? static_cast<std::uint32_t>(round_up(l.fc1_blocks, k_scale_pitch_floats)) : 0;
  l.scale_pitch2 =
      fp8 ? static_cast<std::uint32_t>(round_up(l.fc2_blocks, k_scale_pitch_floats)) : 0;
  std::uint64_t at = 0;
  const auto place = [&at](std::uint64_t bytes) {
    const std::uint64_t start = at;
    at += round_up(bytes, 64);
    return start;
  };
  l.fc1 = place(std::uint64_t{l.fc1_strips} * l.fc1_blocks * k_tile_bytes);
  l.fc2 = place(std::uint64_t{l.fc2_strips} * l.fc2_blocks * k_tile_bytes);
  l.scales1 = place(2 * (i / 128) * l.scale_pitch1 * 4);
  l.scales2 = place((h / 128) * l.scale_pitch2 * 4);
  l.bias1 = place(shape.bias ? 2 * i * 4 : 0);
  l.bias2 = place(shape.bias ? h * 4 : 0);
  l.constants = place(16);
  l.bytes = round_up(at, k_page_alignment_bytes);
  return l;
}

// Byte of element (n, k) of FC1's or FC2's matrix, from the matrix's first byte, by page row n.
constexpr std::uint64_t weight_offset(gemm_format format, std::uint32_t blocks, std::uint32_t n,
                                      std::uint32_t k) noexcept {
  const std::uint32_t columns = columns_of_block(format);
  const std::uint32_t bytes = k_tile_row_bytes / columns;
  return (std::uint64_t{n / k_tile_rows} * blocks + k / columns) * k_tile_bytes +
         swizzled(n % k_tile_rows, k % columns * bytes);
}

// Byte of element (row q of the tile, k) of a row tile's activations, from the first byte of the
// whole buffer. `blocks` = blocks of K of that buffer.
constexpr std::uint64_t activation_offset(gemm_format format, std::uint32_t blocks,
                                          std::uint32_t first_group, std::uint32_t groups,
                                          std::uint32_t q, std::uint32_t k) noexcept {
  const std::uint32_t columns = columns_of_block(format);
  const std::uint32_t bytes = k_tile_row_bytes / columns;
  return (std::uint64_t{first_group} * blocks + std::uint64_t{k / columns} * groups) *
             group_bytes(format) +
         std::uint64_t{q / k_group_rows} * k_group_code_bytes +
         swizzled(q % k_group_rows, k % columns * bytes);
}
// Byte of the scale of row q and block `block`; fp8 only.
constexpr std::uint64_t activation_scale_offset(std::uint32_t blocks, std::uint32_t first_group,
                                                std::uint32_t groups, std::uint32_t q,
                                                std::uint32_t block) noexcept {
  return (std::uint64_t{first_group} * blocks + std::uint64_t{block} * groups) *
             group_bytes(gemm_format::fp8) +
         std::uint64_t{groups} * k_group_code_bytes + std::uint64_t{q} * 4;
}

}  // namespace moetier::kernels::cuda
