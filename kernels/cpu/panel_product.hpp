#pragma once
// Panel product: rows times a range of panels, through the tiles of one instruction set. It decides
// which tile runs over which panels and what is fetched ahead, and knows nothing of experts:
// whoever calls it says what happens to each tile's sums. A template, so that this costs no call
// per tile.
//
// Up to three rows: reading the weights is the whole cost, so several panels stream at once, each
// continuing through its neighbours, far from the others. More rows: tiles share a panel that stays
// in the cache, and together fetch the next one. Quantised panels become f32 a chunk of K at a
// time, once for all tiles, while the first one runs. Thread: any (an immutable value; sums and
// expanded belong to the caller).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/panel_kernels.hpp"
#include "kernels/cpu/panel_page.hpp"
#include "kernels/cpu/wave.hpp"
#include "kernels/limits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {

struct panel_range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// What one item of work multiplies: all tiles of a block times the panels of a range.
struct panel_work {
  const panel_strip& strip;
  const std::byte* page = nullptr;
  std::span<const wave_tile> tiles;  // of neighbouring rows
  const float* rows = nullptr;       // interleaved, per tile [depth][rows], from wave row 0
  std::size_t row_floats = 0;        // of one row in `rows`
  panel_range range;
  float* sums = nullptr;      // k_panel_sums_floats
  float* expanded = nullptr;  // k_panel_expanded_floats; only where weights are quantised
};

inline constexpr std::size_t k_panel_sums_floats = k_block_rows_max * k_panel_columns;
inline constexpr std::size_t k_panel_expanded_floats = k_expand_steps * k_panel_columns;

// What becomes of the sums: expect(panel, tile) while they are made, which may fetch what they will
// be written to; then take(panel, tile, sums[rows][16]), once for each pair.
template <class Expect, class Take>
struct panel_sink {
  Expect expect;
  Take take;
};
// clang 14 deduces no aggregates by itself.
template <class Expect, class Take>
panel_sink(Expect, Take) -> panel_sink<Expect, Take>;

class panel_product final {
 public:
  panel_product(const panel_kernels& kernels, const weight_format& format) noexcept
      : tiles_(format.quant != quant_kind::none ? kernels.near
               : format.stored == dtype::bf16   ? kernels.bf16
                                                : kernels.f32),
        fused_(kernels.fused[static_cast<std::size_t>(format.quant)]),
        quantised_(format.quant != quant_kind::none) {
    MOETIER_ASSERT((fused_.of[1][1] != nullptr) == quantised_);
  }

  bool quantised() const noexcept { return quantised_; }

  // Requires: work.tiles is not empty.
  template <class Sink>
  void multiply(const panel_work& work, const Sink& sink) const noexcept {
    const bool alone = work.tiles.size() == 1;
    if (quantised_)
      alone ? few_quantised(work, sink) : many_quantised(work, sink);
    else
      alone&& work.tiles[0].rows <= k_few_rows ? few(work, sink) : many(work, sink);
  }

 private:
  static constexpr std::uint32_t k_few_rows = 3;
  // How far ahead each stream of few rows fetches. Cold, share of the read rate: one row 384 bytes
  // 0.98, 640 0.99, 1024 0.97, 3072 0.85; two rows 1024 bytes 0.97, 3072 0.92; three rows 1024 bytes
  // 0.90, 2048 0.92.
  static constexpr std::size_t ahead_bytes(std::uint32_t rows) noexcept {
    return rows == 1 ? 640 : rows == 2 ? 1024 : 2048;
  }
  static constexpr std::size_t k_line_bytes = 64;
  static constexpr std::size_t k_quad = 4;  // steps of K between prefetches

  const std::byte* first_panel(const panel_work& w) const noexcept {
    return w.page + w.strip.offset_bytes;
  }

  template <class Sink>
  void few(const panel_work& w, const Sink& sink) const noexcept;
  template <class Sink>
  void few_quantised(const panel_work& w, const Sink& sink) const noexcept;
  template <class Sink>
  void many(const panel_work& w, const Sink& sink) const noexcept;
  template <class Sink>
  void many_quantised(const panel_work& w, const Sink& sink) const noexcept;

  const tile_table& tiles_;
  const fused_table& fused_;
  bool quantised_;
};

template <class Sink>
void panel_product::few(const panel_work& w, const Sink& sink) const noexcept {
  const wave_tile& tile = w.tiles[0];
  const std::size_t lines = tiles_.prefetch_lines;
  tile_args args{.rows = w.rows + tile.first_row * w.row_floats,
                 .depth = w.strip.depth,
                 .sums = w.sums,
                 .prefetch_gap_bytes = k_line_bytes,
                 .prefetch_step_bytes = lines * k_line_bytes};
  std::uint32_t begin = w.range.begin;
  for (unsigned streams = k_streams_max; streams > 0; --streams) {
    const tile_fn run_tile = tiles_.of[tile.rows][streams];
    if (run_tile == nullptr) continue;
    const std::uint32_t length = (w.range.end - begin) / streams;
    args.stream_bytes = length * w.strip.panel_bytes;
    for (std::uint32_t panel = begin; panel < begin + length; ++panel) {
      args.panel = first_panel(w) + panel * w.strip.panel_bytes;
      args.prefetch = args.panel + ahead_bytes(tile.rows);
      for (unsigned i = 0; i < streams; ++i) sink.expect(panel + i * length, tile);
      run_tile(args);
      for (unsigned i = 0; i < streams; ++i)
        sink.take(panel + i * length, tile, w.sums + i * tile.rows * k_panel_columns);
    }
    begin += length * streams;
  }
}

// The same over quantised panels, a chunk of all streams at a time.
template <class Sink>
void panel_product::few_quantised(const panel_work& w, const Sink& sink) const noexcept {
  const wave_tile& tile = w.tiles[0];
  const float* rows = w.rows + tile.first_row * w.row_floats;
  fused_args args{
      .tile = {.sums = w.sums}, .scales_bytes = w.strip.scales_bytes, .out = w.expanded};
  std::uint32_t begin = w.range.begin;
  for (unsigned streams = k_streams_max; streams > 0; --streams) {
    const fused_fn run_tile = fused_.of[tile.rows][streams];
    if (run_tile == nullptr) continue;
    const std::uint32_t length = (w.range.end - begin) / streams;
    args.out_steps = k_expand_steps / streams / k_expand_steps_min * k_expand_steps_min;
    args.tile.stream_bytes = length * w.strip.panel_bytes;
    for (std::uint32_t panel = begin; panel < begin + length; ++panel) {
      args.tile.panel = first_panel(w) + panel * w.strip.panel_bytes;
      for (unsigned i = 0; i < streams; ++i) sink.expect(panel + i * length, tile);
      for (std::size_t k = 0; k < w.strip.depth; k += args.out_steps) {
        args.first = k;
        args.tile.rows = rows + k * tile.rows;
        args.tile.depth = std::min(args.out_steps, w.strip.depth - k);
        args.tile.resume = k > 0;
        run_tile(args);
      }
      for (unsigned i = 0; i < streams; ++i)
        sink.take(panel + i * length, tile, w.sums + i * tile.rows * k_panel_columns);
    }
    begin += length * streams;
  }
}

// Each tile fetches its share of the next chunk as `lines` streams, so that memory reads from
// several places at once: one tile of 4 rows 0.71 -> 0.81 of what is possible, cold.
template <class Sink>
void panel_product::many(const panel_work& w, const Sink& sink) const noexcept {
  const std::uint32_t first_row = w.tiles[0].first_row;
  const std::size_t lines = tiles_.prefetch_lines;
  tile_args args{};
  for (std::uint32_t panel = w.range.begin; panel < w.range.end; ++panel) {
    for (std::size_t k = 0; k < w.strip.depth; k += k_depth_block) {
      args.depth = std::min(k_depth_block, w.strip.depth - k);
      args.resume = k > 0;
      args.panel = first_panel(w) + panel * w.strip.panel_bytes + k * w.strip.step_bytes;
      const std::size_t share = args.depth * w.strip.step_bytes / w.tiles.size();
      args.prefetch = args.panel + args.depth * w.strip.step_bytes;
      args.prefetch_gap_bytes = share / lines;
      args.prefetch_step_bytes =
          args.prefetch_gap_bytes / std::max<std::size_t>(args.depth / k_quad, 1);
      for (const wave_tile& tile : w.tiles) {
        args.rows = w.rows + tile.first_row * w.row_floats + k * tile.rows;
        args.sums = w.sums + (tile.first_row - first_row) * k_panel_columns;
        const bool last = k + args.depth == w.strip.depth;
        if (last) sink.expect(panel, tile);
        tiles_.of[tile.rows][1](args);
        if (last) sink.take(panel, tile, args.sums);
        args.prefetch += share;
      }
    }
  }
}

// The first tile turns a chunk of a panel into f32 for the others.
template <class Sink>
void panel_product::many_quantised(const panel_work& w, const Sink& sink) const noexcept {
  const std::uint32_t first_row = w.tiles[0].first_row;
  for (std::uint32_t panel = w.range.begin; panel < w.range.end; ++panel) {
    for (std::size_t k = 0; k < w.strip.depth; k += k_expand_steps) {
      tile_args args{.panel = first_panel(w) + panel * w.strip.panel_bytes,
                     .depth = std::min(k_expand_steps, w.strip.depth - k),
                     .resume = k > 0};
      for (const wave_tile& tile : w.tiles) {
        args.rows = w.rows + tile.first_row * w.row_floats + k * tile.rows;
        args.sums = w.sums + (tile.first_row - first_row) * k_panel_columns;
        const bool last = k + args.depth == w.strip.depth;
        if (last) sink.expect(panel, tile);
        if (&tile == w.tiles.data()) {
          fused_.of[tile.rows][1]({.tile = args,
                                   .scales_bytes = w.strip.scales_bytes,
                                   .first = k,
                                   .out = w.expanded,
                                   .out_steps = k_expand_steps});
          args.panel = reinterpret_cast<const std::byte*>(w.expanded);
        } else {
          tiles_.of[tile.rows][1](args);
        }
        if (last) sink.take(panel, tile, args.sums);
      }
    }
  }
}

}  // namespace moetier::kernels
