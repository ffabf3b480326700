// What adapters add in a panel_backend: A x once a row, B (A x) to the sums of each panel.
#include <cmath>

#include "kernels/cpu/panel_scratch.hpp"
#include "kernels/limits.hpp"

namespace moetier::kernels {

// A x of gate and up for the rows that have an adapter.
void panel_backend::lower_inputs(const wave_tile& tile, const wave& w,
                                 const scratch& s) const noexcept {
  for (std::size_t i = tile.first_row; i < std::size_t{tile.first_row} + tile.rows; ++i) {
    const wave_row& row = w.rows[i];
    if (row.lora == nullptr) continue;
    float* low = s.low + i * k_low_floats;
    for (const lora_pair* pair : {&row.lora->gate, &row.lora->up}) {
      for (std::size_t j = 0; j < row.lora->rank && pair->a != nullptr; ++j)
        low[j] = kernels_.rows->dot(pair->a + j * shape_.hidden_size, row.in, shape_.hidden_size);
      low += k_lora_rank_max;
    }
  }
}

// A x of down, whose x lies interleaved.
void panel_backend::lower_activated(const wave_tile& tile, const wave& w, const scratch& s,
                                    unsigned lane) const noexcept {
  const std::size_t units = shape_.intermediate_size;
  const std::size_t row_floats = std::size_t{page_.fc1().panels} * page_.fc1().units;
  float* x = s.contiguous + lane * units;
  for (std::uint32_t r = 0; r < tile.rows; ++r) {
    const std::size_t i = tile.first_row + r;
    const lora_expert* lora = w.rows[i].lora;
    if (lora == nullptr || lora->down.a == nullptr) continue;
    const float* from = s.activated + tile.first_row * row_floats + r;
    for (std::size_t k = 0; k < units; ++k) x[k] = from[k * tile.rows];
    for (std::size_t j = 0; j < lora->rank; ++j)
      s.low[i * k_low_floats + j] = kernels_.rows->dot(lora->down.a + j * units, x, units);
  }
}

// sums += scale * B (A x) for the 16 outputs of a panel.
void panel_backend::add_lora(const panel_strip& strip, std::uint32_t panel, const wave_tile& tile,
                             const wave& w, const scratch& s, float* sums) const noexcept {
  const bool fc1 = &strip == &page_.fc1();
  const bool paired = strip.units == k_fc1_panel_units;
  const std::size_t outputs = fc1 ? shape_.intermediate_size : shape_.hidden_size;
  for (std::uint32_t r = 0; r < tile.rows; ++r) {
    const std::size_t i = tile.first_row + r;
    const lora_expert* lora = w.rows[i].lora;
    if (lora == nullptr) continue;
    const float* low = s.low + i * k_low_floats;
    const auto add = [&](const lora_pair& pair, const float* from, unsigned column,
                         unsigned columns) {
      if (pair.a == nullptr) return;
      const std::size_t first = std::size_t{panel} * strip.units;
      for (std::size_t c = 0; c < columns && first + c < outputs; ++c) {
        float& sum = sums[r * k_panel_columns + column + c];
        sum =
            std::fma(lora->scale,
                     kernels_.rows->dot(pair.b + (first + c) * lora->rank, from, lora->rank), sum);
      }
    };
    if (paired) {
      add(lora->gate, low, 0, strip.units);
      add(lora->up, low + k_lora_rank_max, strip.units, strip.units);
    } else if (fc1) {
      add(lora->up, low + k_lora_rank_max, 0, strip.units);
    } else {
      add(lora->down, low, 0, strip.units);
    }
  }
}

}  // namespace moetier::kernels
