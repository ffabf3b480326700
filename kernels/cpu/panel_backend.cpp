#include "kernels/cpu/panel_backend.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include "kernels/cpu/panel_scratch.hpp"
#include "kernels/entries.hpp"
#include "kernels/limits.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::uint32_t k_line_floats = 16;

// Below this many multiply-adds a wave costs less than waking another thread.
constexpr std::size_t k_shared_work_min = std::size_t{1} << 18;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

}  // namespace

panel_backend::panel_backend(const expert_shape& shape, const panel_kernels& kernels,
                             unsigned threads)
    : shape_(shape),
      page_(shape),
      kernels_(kernels),
      product_(kernels, shape.format),
      identity_(fmt::format("{}{}", kernels.identity_prefix, quant_name(shape.format.quant))),
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
  take(out->activated, std::size_t{rows} * page_.fc1().panels * page_.fc1().units);
  take(out->sums, pool_.threads() * k_panel_sums_floats);
  if (product_.quantised()) take(out->expanded, pool_.threads() * k_panel_expanded_floats);
  if (supports_lora()) {
    take(out->low, std::size_t{rows} * k_low_floats);
    take(out->contiguous, pool_.threads() * std::size_t{shape_.intermediate_size});
  }
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
  if (call.lora != nullptr && !supports_lora()) return compute_status::lora_unsupported;
  if (const compute_status checked = check_entries(call); checked != compute_status::ok)
    return checked;
  if (call.mode == return_mode::partial) clear_rows(call, shape_.hidden_size);
  if (call.entries.empty()) return compute_status::ok;

  MOETIER_ASSERT(reinterpret_cast<std::uintptr_t>(call.workspace.data()) % k_page_alignment == 0);
  const std::uint32_t capacity = wave_rows(call.entries.size());
  scratch s;
  lay_out(capacity, call.workspace.data(), &s);
  wave w{.rows = {s.rows, capacity},
         .tiles = {s.tiles, capacity},
         .blocks = {s.blocks, capacity},
         .adapted = call.lora != nullptr};
  for (std::size_t next = 0; next < call.entries.size();) {
    next = next_wave(call, next, w);
    compute(w, s, call);
  }
  return compute_status::ok;
}

// Whole multiples of the widest stream, about four items a thread: a thread that comes late still
// finds work, and few items begin with weights that nobody fetched ahead.
std::uint32_t panel_backend::range_panels(const panel_strip& strip, bool alone) const noexcept {
  if (alone) return strip.panels;
  const std::uint32_t items = 4 * pool_.threads();
  const std::uint32_t panels = (strip.panels + items - 1) / items;
  return (panels + k_streams_max - 1) / k_streams_max * k_streams_max;
}

void panel_backend::compute(const wave& w, const scratch& s, const expert_call& call) noexcept {
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
    kernels_.rows->interleave(rows, tile.rows, shape_.hidden_size,
                              s.inputs + std::size_t{tile.first_row} * shape_.hidden_size);
    if (w.adapted) lower_inputs(tile, w, s);
  });

  const std::uint32_t fc1_step = range_panels(page_.fc1(), alone);
  const std::uint32_t fc1_parts = (page_.fc1().panels + fc1_step - 1) / fc1_step;
  share(w.block_count * fc1_parts, [&](std::uint32_t item, unsigned lane) {
    run_fc1(w, w.blocks[item / fc1_parts], s, range_of(page_.fc1(), fc1_step, item % fc1_parts),
            lane);
  });

  if (w.adapted) {
    share(w.tile_count,
          [&](std::uint32_t item, unsigned lane) { lower_activated(w.tiles[item], w, s, lane); });
  }
  if (call.clock != nullptr) call.clock->end_stage(call.clock->fc1_ns);

  const std::uint32_t fc2_step = range_panels(page_.fc2(), alone);
  const std::uint32_t fc2_parts = (page_.fc2().panels + fc2_step - 1) / fc2_step;
  share(fc2_parts, [&](std::uint32_t item, unsigned lane) {
    const panel_range range = range_of(page_.fc2(), fc2_step, item);
    for (std::uint32_t b = 0; b < w.block_count; ++b)
      run_fc2(w, w.blocks[b], s, call.mode, range, lane);
  });
  if (call.clock != nullptr) call.clock->end_stage(call.clock->fc2_ns);
}

float* panel_backend::expanded_of(const scratch& s, unsigned lane) const noexcept {
  return !product_.quantised() ? nullptr : s.expanded + lane * k_panel_expanded_floats;
}

void panel_backend::run_fc1(const wave& w, const wave_block& block, const scratch& s,
                            panel_range range, unsigned lane) const noexcept {
  const panel_strip& strip = page_.fc1();
  const std::size_t units = std::size_t{strip.panels} * strip.units;
  const auto* bias =
      shape_.bias ? reinterpret_cast<const float*>(block.page + strip.bias_bytes) : nullptr;
  const auto* constants =
      reinterpret_cast<const activation_constants*>(block.page + page_.constants_offset());
  const panel_work work{.strip = strip,
                        .page = block.page,
                        .tiles = w.tiles.subspan(block.first_tile, block.tiles),
                        .rows = s.inputs,
                        .row_floats = strip.depth,
                        .range = range,
                        .sums = s.sums + lane * k_panel_sums_floats,
                        .expanded = expanded_of(s, lane)};
  const auto out_of = [&](std::uint32_t panel, const wave_tile& tile) {
    return s.activated + tile.first_row * units + std::size_t{panel} * strip.units * tile.rows;
  };
  const auto expect = [&](std::uint32_t panel, const wave_tile& tile) {
    const float* out = out_of(panel, tile);
    for (std::uint32_t i = 0; i < strip.units * tile.rows; i += k_line_floats)
      __builtin_prefetch(out + i, 1);
  };
  const auto take = [&](std::uint32_t panel, const wave_tile& tile, float* sums) {
    if (w.adapted) add_lora(strip, panel, tile, w, s, sums);
    kernels_.rows->activate({.kind = shape_.activation,
                             .constants = constants,
                             .bias = bias == nullptr ? nullptr : bias + panel * k_panel_columns,
                             .sums = sums,
                             .rows = tile.rows,
                             .out = out_of(panel, tile)});
  };
  product_.multiply(work, panel_sink{expect, take});
}

void panel_backend::run_fc2(const wave& w, const wave_block& block, const scratch& s,
                            return_mode mode, panel_range range, unsigned lane) const noexcept {
  const std::size_t hidden = shape_.hidden_size;
  const panel_strip& strip = page_.fc2();
  const auto* bias =
      shape_.bias ? reinterpret_cast<const float*>(block.page + strip.bias_bytes) : nullptr;
  const panel_work work{.strip = strip,
                        .page = block.page,
                        .tiles = w.tiles.subspan(block.first_tile, block.tiles),
                        .rows = s.activated,
                        .row_floats = std::size_t{page_.fc1().panels} * page_.fc1().units,
                        .range = range,
                        .sums = s.sums + lane * k_panel_sums_floats,
                        .expanded = expanded_of(s, lane)};
  const auto expect = [&](std::uint32_t panel, const wave_tile& tile) {
    for (std::uint32_t r = 0; r < tile.rows; ++r)
      __builtin_prefetch(w.rows[tile.first_row + r].out + std::size_t{panel} * k_panel_columns, 1);
  };
  const auto take = [&](std::uint32_t panel, const wave_tile& tile, float* sums) {
    if (w.adapted) add_lora(strip, panel, tile, w, s, sums);
    if (bias != nullptr) kernels_.rows->add_bias(bias + panel * k_panel_columns, tile.rows, sums);
    const std::size_t column = std::size_t{panel} * k_panel_columns;
    const std::size_t columns = std::min<std::size_t>(k_panel_columns, hidden - column);
    const wave_row* const rows = &w.rows[tile.first_row];
    if (mode == return_mode::partial && columns == k_panel_columns)
      return kernels_.rows->accumulate(sums, rows, tile.rows, column);
    for (std::uint32_t r = 0; r < tile.rows; ++r) {
      const float* y = sums + r * k_panel_columns;
      float* out = rows[r].out + column;
      if (mode == return_mode::exact)
        std::memcpy(out, y, columns * sizeof(float));
      else
        for (std::size_t c = 0; c < columns; ++c) out[c] = std::fma(rows[r].weight, y[c], out[c]);
    }
  };
  product_.multiply(work, panel_sink{expect, take});
}

}  // namespace moetier::kernels
