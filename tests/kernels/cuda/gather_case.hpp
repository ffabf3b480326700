#pragma once
// One gather in host memory: a grouped batch, its rows, poisoned outputs. Thread: owner.

#include "kernels/cuda/gather_rows_launch.hpp"
#include "tests/kernels/cuda/rows_case.hpp"
#include "tests/kernels/cuda/tiles_case.hpp"

namespace moetier::kernels::cuda {

struct gather_shape {
  gemm_format format = gemm_format::fp8;
  row_type row_as = row_type::bf16;
  std::uint32_t rows = 0;
  std::uint32_t k_in = 1;
  std::uint32_t hidden_size = 0;
  std::uint32_t slots = 3;
  std::uint32_t tile_rows = 64;
  bool zero_idle = false;
  bool by_row = false;  // where a row has several positions
};

struct gather_case {
  gather_shape shape;
  tiles_case table;
  std::size_t pitch;
  whole_bytes rows;
  whole_bytes x;
  whole_bytes out;

  explicit gather_case(const gather_shape& s)
      : shape(s),
        table(random_slots(s.rows + s.hidden_size, std::size_t{s.rows} * s.k_in, s.slots), s.k_in,
              s.slots, s.tile_rows),
        pitch(s.hidden_size * (s.row_as == row_type::bf16 ? 2 : 4) + 32),
        rows(random_rows(s.rows, s.rows, s.hidden_size, pitch, s.row_as == row_type::bf16)),
        x(table.entry_of.size() / 8 * (s.hidden_size / columns_of_block(s.format)) *
          group_bytes(s.format)),
        out(s.rows * out_pitch()) {
    table.group();
  }
  std::size_t out_pitch() const { return shape.hidden_size * std::size_t{4} + 16; }
  gather_rows_args args() {
    tile_table tiles = table.args().tiles;
    if (!shape.by_row) tiles.place_of = nullptr;
    return {.rows = rows.data(),
            .row_pitch_bytes = pitch,
            .row_as = shape.row_as,
            .rows_cap = shape.rows,
            .k_in = shape.k_in,
            .hidden_size = shape.hidden_size,
            .slots = shape.slots,
            .tile_rows = shape.tile_rows,
            .tiles = tiles,
            .x = x.data(),
            .rows_live = &table.rows_live,
            .slot_ids = shape.zero_idle ? table.slot_ids.data() : nullptr,
            .out = out.data(),
            .out_pitch_bytes = out_pitch(),
            .out_as = out_type::f32};
  }
};

}  // namespace moetier::kernels::cuda
