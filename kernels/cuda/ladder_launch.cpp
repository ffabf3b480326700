#include "kernels/cuda/ladder_launch.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "kernels/cuda/expert_gemm_args.hpp"
#include "kernels/cuda/ladder_shared.hpp"

namespace moetier::kernels::cuda {
namespace {

// At least so many blocks a chunk: that costs a whole unit next to nothing and gives one row of a
// large expert a unit for nearly every multiprocessor.
constexpr std::uint32_t k_fc1_chunk_blocks = 7;
constexpr std::uint32_t k_fc2_chunk_blocks = 4;
// 96 KB in flight a multiprocessor draw all that memory gives; more of them land all at once and
// late, where fewer land one after the other and are multiplied meanwhile.
constexpr std::uint32_t k_stages_in_flight = 3;

constexpr std::uint32_t k_ring_alignment = 1024;  // of a swizzled operand

bool fits_format(const gemm_shape& shape) noexcept {
  const std::uint32_t columns = columns_of_block(shape.format);
  return shape.hidden_size != 0 && shape.intermediate_size != 0 &&
         shape.hidden_size % columns == 0 && shape.intermediate_size % columns == 0;
}

ladder_product product(std::uint32_t strips, std::uint32_t blocks, std::uint32_t chunk_blocks) {
  return {.strips = strips,
          .pairs = static_cast<std::uint32_t>(ceil_div(strips, k_unit_strips)),
          .k = cut_k(blocks, chunk_blocks)};
}

void place_shared_memory(ladder_launch& l, const page_layout& page, std::uint32_t shared_max) {
  const auto up = [](std::uint64_t bytes, std::uint64_t to) {
    return static_cast<std::uint32_t>(round_up(bytes, to));
  };
  // A unit of FC1 has a row of scales for its gates and one for its ups, a unit of FC2 one a strip.
  l.scale_bytes = 2 * std::max(page.scale_pitch1, page.scale_pitch2) * 4;
  l.scales_at = up(sizeof(ladder_shared), 16);
  l.staging_at = l.scales_at + k_ladder_records * l.scale_bytes;
  l.ring_at =
      up(l.staging_at + std::uint64_t{l.tile_rows} * k_ladder_staging_pitch * 4, k_ring_alignment);
  l.stage_bytes =
      up(k_unit_strips * k_tile_bytes + l.tile_rows / k_group_rows * group_bytes(l.format),
         k_ring_alignment);
  const std::uint32_t room = shared_max > l.ring_at ? shared_max - l.ring_at : 0;
  l.stages = std::min(room / l.stage_bytes, k_ladder_stages_max);
  l.fc1_stages_in_flight = std::min(l.stages, k_stages_in_flight);
  l.shared_bytes = l.ring_at + l.stages * l.stage_bytes;
}

}  // namespace

std::optional<ladder_launch> plan_ladder(const gemm_shape& shape, std::uint32_t tile_rows,
                                         std::uint32_t tiles_cap,
                                         const device_size& device) noexcept {
  if (tile_rows == 0 || tile_rows > k_ladder_tile_rows_max || tile_rows % k_group_rows != 0 ||
      tiles_cap == 0 || device.multiprocessors == 0 || !fits_format(shape) ||
      (shape.format == gemm_format::fp8 && shape.bias))
    return std::nullopt;

  const page_layout page = page_layout_of(shape);
  ladder_launch l;
  l.format = shape.format;
  l.blocks = device.multiprocessors;
  l.tile_rows = tile_rows;
  l.tiles_cap = tiles_cap;
  l.fc1 = product(page.fc1_strips, page.fc1_blocks, k_fc1_chunk_blocks);
  l.fc2 = product(page.fc2_strips, page.fc2_blocks, k_fc2_chunk_blocks);
  l.split_groups = l.blocks;
  place_shared_memory(l, page, device.shared_bytes_max);
  if (l.stages < k_ladder_stages_min) return std::nullopt;

  l.counters = gemm_counters::first_tile + tiles_cap + 2 * k_ladder_epilogue_warps * l.split_groups;
  l.partials_bytes = std::uint64_t{l.fc1.k.chunks + l.fc2.k.chunks} * l.split_groups *
                     k_group_rows * k_unit_rows * sizeof(float);
  return l;
}

std::string to_string(const ladder_launch& l) {
  const auto product = [](const ladder_product& p) {
    return fmt::format("{} pairs x {} blocks in {} chunks of {}", p.pairs, p.k.blocks, p.k.chunks,
                       p.k.chunk_blocks);
  };
  return fmt::format(
      "{} ladder: {} blocks x {} threads, rows {}, {} stages of {} B, {} of fc1 in flight, shared "
      "{} B; fc1 {}; fc2 {}; "
      "split up to {} groups; {} counters, partials {} B",
      l.format == gemm_format::fp8 ? "fp8" : "bf16", l.blocks, l.threads, l.tile_rows, l.stages,
      l.stage_bytes, l.fc1_stages_in_flight, l.shared_bytes, product(l.fc1), product(l.fc2),
      l.split_groups, l.counters, l.partials_bytes);
}

}  // namespace moetier::kernels::cuda
