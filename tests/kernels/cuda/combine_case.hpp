#pragma once
// One weighted sum in host memory with poisoned outputs. Thread: owner.

#include "kernels/cuda/combine_launch.hpp"
#include "tests/kernels/cuda/rows_case.hpp"
#include "tests/kernels/cuda/tiles_case.hpp"

namespace moetier::kernels::cuda {

struct combine_shape {
  std::uint32_t rows = 0;
  std::uint32_t k_in = 2;
  std::uint32_t hidden_size = 0;
  std::uint32_t slots = 5;
  out_type y_as = out_type::f32;
  out_type out_as = out_type::f32;
};

struct combine_case {
  combine_shape shape;
  std::vector<std::int32_t> slot_ids;
  std::vector<float> weights;
  std::uint32_t rows_live;
  std::size_t y_pitch;
  std::size_t out_pitch;
  whole_bytes y;
  whole_bytes out;

  explicit combine_case(const combine_shape& s)
      : shape(s),
        slot_ids(random_slots(s.rows + s.k_in, std::size_t{s.rows} * s.k_in, s.slots)),
        weights(slot_ids.size()),
        rows_live(s.rows),
        y_pitch(s.hidden_size * (s.y_as == out_type::bf16 ? 2 : 4) + 16),
        out_pitch(s.hidden_size * (s.out_as == out_type::bf16 ? 2 : 4) + 16),
        y(random_rows(s.rows, s.rows * s.k_in, s.hidden_size, y_pitch, s.y_as == out_type::bf16)),
        out(s.rows * out_pitch) {
    std::mt19937 random(s.rows);
    for (float& w : weights) w = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  combine_args args() {
    return {.slot_ids = slot_ids.data(),
            .weights = weights.data(),
            .rows_live = &rows_live,
            .rows_cap = shape.rows,
            .k_in = shape.k_in,
            .hidden_size = shape.hidden_size,
            .y = y.data(),
            .y_pitch_bytes = y_pitch,
            .y_as = shape.y_as,
            .out = out.data(),
            .out_pitch_bytes = out_pitch,
            .out_as = shape.out_as};
  }
};

}  // namespace moetier::kernels::cuda
