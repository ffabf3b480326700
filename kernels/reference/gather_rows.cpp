#include "kernels/reference/gather_rows.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/quant/row_quantiser.hpp"
#include "schemas/base/dtype.hpp"

namespace moetier::kernels {
namespace {

using cuda::gather_rows_args;
using cuda::gemm_format;
using cuda::row_type;

std::vector<float> row_of(const gather_rows_args& args, std::uint32_t r) {
  std::vector<float> row(args.hidden_size);
  const std::byte* const at = args.rows + r * args.row_pitch_bytes;
  if (args.row_as == row_type::f32) {
    std::memcpy(row.data(), at, row.size() * sizeof(float));
    return row;
  }
  for (std::size_t k = 0; k < row.size(); ++k) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at + k * sizeof bits, sizeof bits);
    row[k] = f32_from_bf16(bits);
  }
  return row;
}

void place_fp8(const gather_rows_args& args, const cuda::row_tile& tile, std::uint32_t q,
               const std::vector<float>& row) {
  const std::uint32_t blocks = args.hidden_size / 128;
  const auto first = static_cast<std::uint32_t>(tile.first_group);
  const auto groups = static_cast<std::uint32_t>(tile.groups);
  std::vector<std::uint8_t> codes(row.size());
  std::vector<float> scales(blocks);
  quantise_row(row.data(), row.size(), codes.data(), scales.data());
  for (std::uint32_t k = 0; k < args.hidden_size; ++k)
    args.x[activation_offset(gemm_format::fp8, blocks, first, groups, q, k)] =
        static_cast<std::byte>(codes[k]);
  for (std::uint32_t b = 0; b < blocks; ++b)
    std::memcpy(args.x + cuda::activation_scale_offset(blocks, first, groups, q, b), &scales[b],
                sizeof(float));
}

void place_bf16(const gather_rows_args& args, const cuda::row_tile& tile, std::uint32_t q,
                const std::vector<float>& row) {
  const std::uint32_t blocks = args.hidden_size / 64;
  const auto first = static_cast<std::uint32_t>(tile.first_group);
  const auto groups = static_cast<std::uint32_t>(tile.groups);
  for (std::uint32_t k = 0; k < args.hidden_size; ++k) {
    const std::uint16_t bits = bf16_from_f32(row[k]);
    std::memcpy(args.x + activation_offset(gemm_format::bf16, blocks, first, groups, q, k), &bits,
                sizeof bits);
  }
}

}  // namespace

cuda::launch_status reference::gather_rows(const gather_rows_args& args, gemm_format format) {
  if (args.rows_cap == 0) return {};
  if (!can_gather_rows(args, format)) return {.error = cuda::launch_status::k_refused};
  for (std::uint32_t t = 0; t < args.tiles.header->tiles; ++t) {
    const cuda::row_tile& tile = args.tiles.tiles[t];
    for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(tile.rows); ++q) {
      const std::int32_t entry =
          args.tiles.entry_of[static_cast<std::uint32_t>(tile.first_group) * 8 + q];
      const auto row = row_of(args, static_cast<std::uint32_t>(entry) / args.k_in);
      format == gemm_format::fp8 ? place_fp8(args, tile, q, row) : place_bf16(args, tile, q, row);
    }
  }
  if (args.slot_ids == nullptr) return {};
  for (std::uint32_t r = 0; r < std::min(*args.rows_live, args.rows_cap); ++r) {
    if (args.slot_ids[r] == -1)
      std::memset(args.out + r * args.out_pitch_bytes, 0,
                  std::size_t{args.hidden_size} * (args.out_as == cuda::out_type::bf16 ? 2 : 4));
  }
  return {};
}

}  // namespace moetier::kernels
