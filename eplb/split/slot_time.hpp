#pragma once
// Time instead of tokens: a slot without rows takes none, one with rows at least the time to stream
// its weights. Which objective pays follows from the selections that a slot can expect.
// Thread: any (pure functions).

#include <algorithm>
#include <cstdint>
#include <span>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

struct slot_cost {
  double weights_us = 9.2;  // to stream one expert's weights; calibrated per worker at start
  double row_us = 0.088;    // per row
};

constexpr double slot_time_us(std::uint64_t rows, const slot_cost& c) noexcept {
  return rows == 0 ? 0 : std::max(c.weights_us, static_cast<double>(rows) * c.row_us);
}
// Rows from which arithmetic takes longer than streaming the weights.
constexpr double crossover_rows(const slot_cost& c) noexcept { return c.weights_us / c.row_us; }

enum class load_regime : std::uint8_t {
  active_slots,  // below 10 selections per slot: as few slots as possible
  weights,       // up to 100: streaming dominates, shares rest
  tokens,        // above: balance tokens
};

constexpr load_regime regime_of(double selections_per_slot) noexcept {
  return selections_per_slot < 10    ? load_regime::active_slots
         : selections_per_slot < 100 ? load_regime::weights
                                     : load_regime::tokens;
}

// The longest layer time of a worker, which is the sum over its slots. `rows` by slot.
inline double longest_us(std::span<const std::uint64_t> rows, const slot_layout& layout,
                         const slot_cost& c) noexcept {
  double most = 0;
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    double t = 0;
    for (std::uint32_t s = layout.first(g); s < layout.first(g) + layout.count(g); ++s)
      t += slot_time_us(rows[s], c);
    most = std::max(most, t);
  }
  return most;
}

}  // namespace moetier::eplb
