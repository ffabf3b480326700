#include "kernels/cuda/sm90_workspace.hpp"

#include <algorithm>

#include "kernels/cuda/ladder_launch.hpp"
#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/cuda/straight_launch.hpp"

namespace moetier::kernels::cuda {

namespace {

// The most that any tile height asks for.
struct gemm_needs {
  std::uint32_t counters = 0;
  std::uint64_t partials_bytes = 0;
};

std::optional<gemm_needs> needs_of(const gemm_shape& shape, std::uint64_t entries,
                                   std::uint32_t slots, const device_size& device) noexcept {
  const auto straight =
      plan_straight(shape, tiles_max(entries, slots, k_straight_tile_rows), device);
  if (!straight) return std::nullopt;
  gemm_needs needs{.counters = straight->counters};
  for (std::uint32_t rows = k_tile_rows_min; rows <= k_ladder_tile_rows_max; rows *= 2) {
    const auto ladder = plan_ladder(shape, rows, tiles_max(entries, slots, rows), device);
    if (!ladder) return std::nullopt;
    needs.counters = std::max(needs.counters, ladder->counters);
    needs.partials_bytes = std::max(needs.partials_bytes, ladder->partials_bytes);
  }
  return needs;
}

}  // namespace

std::size_t counters_bytes_of(const gemm_shape& shape, const device_size& device) noexcept {
  const auto most = needs_of(shape, k_row_tiles_entries_max, k_row_tiles_slots_max, device);
  return most ? std::size_t{most->counters} * 4 : 0;
}

std::optional<sm90_workspace> plan_workspace(const gemm_shape& shape,
                                             const layer_capacity& capacity,
                                             const device_size& device) noexcept {
  const std::uint64_t entries = std::uint64_t{capacity.rows_cap} * capacity.k_in;
  if (entries > k_row_tiles_entries_max || capacity.slots > k_row_tiles_slots_max)
    return std::nullopt;
  const auto needs = needs_of(shape, entries, capacity.slots, device);
  if (!needs) return std::nullopt;
  // The lowest tiles make the longest tables.
  const std::uint32_t tiles = tiles_max(entries, capacity.slots, k_tile_rows_min);
  const std::uint64_t groups = groups_max(entries, capacity.slots);

  const page_layout layout = page_layout_of(shape);
  sm90_workspace w;
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
  w.partials = place(needs->partials_bytes);
  return w;
}

}  // namespace moetier::kernels::cuda
