#include "kernels/cpu/panel_backend.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/entries.hpp"
#include "kernels/limits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

// Where one tile streams through panels, their lines are fetched this far ahead. Cold weights,
// share of the read rate at 2, 4 and 6 rows: 512 bytes 0.80, 0.56, 0.52; 3072 bytes 0.90, 0.78,
// 0.72.
constexpr std::size_t k_ahead_bytes = 3072;
constexpr std::size_t k_line_bytes = 64;
constexpr std::size_t k_quad = 4;  // steps of K between prefetches

// Below this many multiply-adds a wave costs less than waking another thread.
constexpr std::size_t k_shared_work_min = std::size_t{1} << 18;

constexpr std::size_t k_sums_floats = k_block_rows_max * k_panel_columns;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

}  // namespace

// The workspace of one call, cut into its parts.
struct panel_backend::scratch {
  wave_row* rows = nullptr;
  wave_tile* tiles = nullptr;
  wave_block* blocks = nullptr;
  float* inputs = nullptr;     // per tile [H][rows]
  float* activated = nullptr;  // per tile [I padded to panels][rows]
  float* sums = nullptr;       // per lane
};

panel_backend::panel_backend(const expert_shape& shape, const panel_kernels& kernels,
                             unsigned threads)
    : shape_(shape),
      page_(shape),
      kernels_(kernels),
      tiles_(page_.format() == panel_format::bf16 ? kernels.bf16 : kernels.f32),
      pool_(threads) {}

// More threads get more blocks to share out per wave.
std::uint32_t panel_backend::wave_rows(std::size_t entries) const noexcept {
  const std::size_t blocks = std::min(pool_.threads(), k_wave_blocks_full_max);
  return static_cast<std::uint32_t>(std::min(entries, blocks * k_block_rows_max));
}

std::size_t panel_backend::lay_out(std::uint32_t rows, std::byte* base,
                                   scratch* out) const noexcept {
  std::size_t bytes = 0;
  const auto take = [&]<class T>(T*& part, std::size_t count) {
    if (base != nullptr) part = reinterpret_cast<T*>(base + bytes);
    bytes += aligned(count * sizeof(T));
  };
  take(out->rows, rows);
  take(out->tiles, rows);
  take(out->blocks, rows);
  take(out->inputs, std::size_t{rows} * page_.fc1().depth);
  take(out->activated, std::size_t{rows} * page_.fc1().panels * k_fc1_panel_units);
  take(out->sums, pool_.threads() * k_sums_floats);
  return bytes;
}

std::size_t panel_backend::workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept {
  const std::size_t entries = std::size_t{rows} * k_in;
  if (entries == 0) return 0;
  scratch unplaced;
  return lay_out(wave_rows(entries), nullptr, &unplaced);
}

compute_status panel_backend::run(const expert_call& call) {
  const std::size_t live = live_rows(call);
  MOETIER_ASSERT(live <= std::numeric_limits<std::uint32_t>::max());
  if (call.workspace.size() < workspace_bytes(static_cast<std::uint32_t>(live), call.k_in))
    return compute_status::workspace_short;
  if (const compute_status checked = check_entries(call); checked != compute_status::ok)
    return checked;
  if (call.mode == return_mode::partial) clear_rows(call, shape_.hidden_size);
  if (call.entries.empty()) return compute_status::ok;

  MOETIER_ASSERT(reinterpret_cast<std::uintptr_t>(call.workspace.data()) % k_page_alignment == 0);
  const std::uint32_t capacity = wave_rows(call.entries.size());
  scratch s;
  lay_out(capacity, call.workspace.data(), &s);
  wave w{.rows = {s.rows, capacity}, .tiles = {s.tiles, capacity}, .blocks = {s.blocks, capacity}};
  for (std::size_t next = 0; next < call.entries.size();) {
    next = next_wave(call, next, w);
    compute(w, s, call.mode);
  }
  return compute_status::ok;
}

// Whole multiples of the widest stream, about two items a thread.
std::uint32_t panel_backend::range_panels(const panel_strip& strip, bool alone) const noexcept {
  if (alone) return strip.panels;
  const std::uint32_t items = 2 * pool_.threads();
  const std::uint32_t panels = (strip.panels + items - 1) / items;
  return (panels + k_streams_max - 1) / k_streams_max * k_streams_max;
}

void panel_backend::compute(const wave& w, const scratch& s, return_mode mode) noexcept {
  const std::size_t work = std::size_t{w.row_count} * shape_.hidden_size * shape_.intermediate_size;
  const bool alone = pool_.threads() == 1 || work < k_shared_work_min;
  const auto share = [&](std::uint32_t items, auto&& body) {
    if (!alone) return pool_.for_each(items, body);
    for (std::uint32_t item = 0; item < items; ++item) body(item, 0u);
  };
  const auto range_of = [](const panel_strip& strip, std::uint32_t step, std::uint32_t part) {
    return panel_range{part * step, std::min(strip.panels, (part + 1) * step)};
  };

  share(w.tile_count, [&](std::uint32_t item, unsigned) {
    const wave_tile& tile = w.tiles[item];
    const float* rows[k_tile_rows_max];
    for (std::uint32_t r = 0; r < tile.rows; ++r) rows[r] = w.rows[tile.first_row + r].in;
    kernels_.interleave(rows, tile.rows, shape_.hidden_size,
                        s.inputs + std::size_t{tile.first_row} * shape_.hidden_size);
  });

  const std::uint32_t fc1_step = range_panels(page_.fc1(), alone);
  const std::uint32_t fc1_parts = (page_.fc1().panels + fc1_step - 1) / fc1_step;
  share(w.block_count * fc1_parts, [&](std::uint32_t item, unsigned lane) {
    run_fc1(w, w.blocks[item / fc1_parts], s, range_of(page_.fc1(), fc1_step, item % fc1_parts),
            lane);
  });

  const std::uint32_t fc2_step = range_panels(page_.fc2(), alone);
  const std::uint32_t fc2_parts = (page_.fc2().panels + fc2_step - 1) / fc2_step;
  share(fc2_parts, [&](std::uint32_t item, unsigned lane) {
    const panel_range range = range_of(page_.fc2(), fc2_step, item);
    for (std::uint32_t b = 0; b < w.block_count; ++b) run_fc2(w, w.blocks[b], s, mode, range, lane);
  });
}

// All tiles of a block times the panels of a range; store(panel, tile, sums) gets each product
// once.
template <class Store>
void panel_backend::multiply(const panel_strip& strip, const wave_block& block,
                             std::span<const wave_tile> tiles, const float* rows,
                             std::size_t row_floats, panel_range range, float* sums,
                             Store&& store) const noexcept {
  const std::byte* first = block.page + strip.offset_bytes;
  const std::size_t step_bytes = page_.depth_bytes();
  const std::size_t lines = tiles_.prefetch_lines;
  tile_args args{.sums = sums};

  if (tiles.size() == 1) {
    // Few rows: reading the weights is the whole cost, so several panels stream at once, each
    // continuing through its neighbours, far from the others.
    const wave_tile& tile = tiles[0];
    args.rows = rows + tile.first_row * row_floats;
    args.depth = strip.depth;
    args.prefetch_gap_bytes = k_line_bytes;
    args.prefetch_step_bytes = lines * k_line_bytes;
    std::uint32_t begin = range.begin;
    for (unsigned streams = k_streams_max; streams > 0; --streams) {
      const tile_fn run_tile = tiles_.of[tile.rows][streams];
      if (run_tile == nullptr) continue;
      const std::uint32_t length = (range.end - begin) / streams;
      args.stream_bytes = length * strip.panel_bytes;
      for (std::uint32_t p = begin; p < begin + length; ++p) {
        args.panel = first + p * strip.panel_bytes;
        args.prefetch = args.panel + k_ahead_bytes;
        run_tile(args);
        for (unsigned i = 0; i < streams; ++i)
          store(p + i * length, tile, sums + i * tile.rows * k_panel_columns);
      }
      begin += length * streams;
    }
    return;
  }

  // Several tiles share a panel that stays in the cache; together they fetch what comes next.
  for (std::uint32_t p = range.begin; p < range.end; ++p) {
    for (std::size_t k = 0; k < strip.depth; k += k_depth_block) {
      args.depth = std::min(k_depth_block, strip.depth - k);
      args.resume = k > 0;
      args.panel = first + p * strip.panel_bytes + k * step_bytes;
      const std::size_t share = args.depth * step_bytes / tiles.size();
      args.prefetch = args.panel + args.depth * step_bytes;
      args.prefetch_gap_bytes = share / lines;
      args.prefetch_step_bytes =
          args.prefetch_gap_bytes / std::max<std::size_t>(args.depth / k_quad, 1);
      for (const wave_tile& tile : tiles) {
        args.rows = rows + tile.first_row * row_floats + k * tile.rows;
        args.sums = sums + (tile.first_row - block.first_row) * k_panel_columns;
        tiles_.of[tile.rows][1](args);
        if (k + args.depth == strip.depth) store(p, tile, args.sums);
        args.prefetch += share;
      }
    }
  }
}

void panel_backend::run_fc1(const wave& w, const wave_block& block, const scratch& s,
                            panel_range range, unsigned lane) const noexcept {
  const std::size_t units = std::size_t{page_.fc1().panels} * k_fc1_panel_units;
  multiply(page_.fc1(), block, w.tiles.subspan(block.first_tile, block.tiles), s.inputs,
           page_.fc1().depth, range, s.sums + lane * k_sums_floats,
           [&](std::uint32_t panel, const wave_tile& tile, const float* sums) {
             float* out = s.activated + tile.first_row * units;
             kernels_.swiglu(sums, tile.rows,
                             out + std::size_t{panel} * k_fc1_panel_units * tile.rows);
           });
}

void panel_backend::run_fc2(const wave& w, const wave_block& block, const scratch& s,
                            return_mode mode, panel_range range, unsigned lane) const noexcept {
  const std::size_t hidden = shape_.hidden_size;
  const std::size_t units = std::size_t{page_.fc1().panels} * k_fc1_panel_units;
  multiply(page_.fc2(), block, w.tiles.subspan(block.first_tile, block.tiles), s.activated, units,
           range, s.sums + lane * k_sums_floats,
           [&](std::uint32_t panel, const wave_tile& tile, const float* sums) {
             const std::size_t column = std::size_t{panel} * k_panel_columns;
             const std::size_t columns = std::min<std::size_t>(k_panel_columns, hidden - column);
             for (std::uint32_t r = 0; r < tile.rows; ++r) {
               const wave_row& row = w.rows[tile.first_row + r];
               const float* y = sums + r * k_panel_columns;
               float* out = row.out + column;
               __builtin_prefetch(out + k_panel_columns, 1);
               if (mode == return_mode::exact) {
                 std::memcpy(out, y, columns * sizeof(float));
               } else if (columns == k_panel_columns) {
                 kernels_.accumulate(y, row.weight, out);
               } else {
                 for (std::size_t c = 0; c < columns; ++c)
                   out[c] = std::fma(row.weight, y[c], out[c]);
               }
             }
           });
}

}  // namespace moetier::kernels
