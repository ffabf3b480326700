#include "kernels/cuda/sm90_workspace.hpp"

#include <algorithm>

#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/cuda/sm90_variant.hpp"

namespace moetier::kernels::cuda {

std::size_t counters_bytes_of(const gemm_shape& shape, const device_size& device) noexcept {
  const auto most = [](gemm_variant v) {
    return tiles_max(k_row_tiles_entries_max, k_row_tiles_slots_max, tile_rows_of(v));
  };
  const auto ladder =
      plan_ladder(shape, tile_rows_of(gemm_variant::ladder), most(gemm_variant::ladder), device);
  const auto straight = plan_straight(shape, most(gemm_variant::straight), device);
  return ladder && straight ? std::size_t{std::max(ladder->counters, straight->counters)} * 4 : 0;
}

std::optional<sm90_workspace> plan_workspace(const gemm_shape& shape,
                                             const layer_capacity& capacity,
                                             const device_size& device) noexcept {
  const std::uint64_t entries = std::uint64_t{capacity.rows_cap} * capacity.k_in;
  if (entries > k_row_tiles_entries_max || capacity.slots > k_row_tiles_slots_max)
    return std::nullopt;
  // The smaller tiles make the longer tables.
  const std::uint32_t tile_rows = tile_rows_of(gemm_variant::ladder);
  const std::uint32_t tiles = tiles_max(entries, capacity.slots, tile_rows);
  const std::uint64_t groups = groups_max(entries, capacity.slots, tile_rows);
  const auto ladder = plan_ladder(shape, tile_rows, tiles, device);
  const auto straight = plan_straight(
      shape, tiles_max(entries, capacity.slots, tile_rows_of(gemm_variant::straight)), device);
  if (!ladder || !straight) return std::nullopt;

  const page_layout layout = page_layout_of(shape);
  sm90_workspace w{.ladder = *ladder, .straight = *straight};
  const auto place = [&w](std::uint64_t bytes) {
    const std::size_t at = w.bytes;
    w.bytes += round_up(bytes, 256);
    return at;
  };
  w.counters_bytes = counters_bytes_of(shape, device);
  place(w.counters_bytes);
  w.header = place(sizeof(tile_header));
  w.tiles = place(std::uint64_t{tiles} * sizeof(row_tile));
  w.segment_tile = place((std::min<std::uint64_t>(entries, capacity.slots) + 1) * 4);
  w.tile_segment = place(std::uint64_t{tiles} * 4);
  w.entry_of = place(groups * k_group_rows * 4);
  w.place_of = place(capacity.k_in > 1 ? entries * 4 : 0);
  w.scratch_bytes = row_tiles_scratch_bytes(entries, capacity.slots);
  w.scratch = place(w.scratch_bytes);
  w.x = place(groups * layout.fc1_blocks * group_bytes(shape.format));
  w.mid = place(groups * layout.fc2_blocks * group_bytes(shape.format));
  w.y = place(capacity.k_in > 1 ? entries * shape.hidden_size * 4 : 0);
  w.partials = place(ladder->partials_bytes);
  return w;
}

}  // namespace moetier::kernels::cuda
