#pragma once
// How long a call of so many rows takes here: a line through what calls took, one point for each
// power of two of rows, so that the fixed part, the part per row and the part per activated expert
// (which ends growing once all are activated) are all in it. It starts without an opinion (0): the
// first calls touch memory for the first time, so only the fastest of them counts. Then it follows
// what is observed. A guess by which a call was refused fades, so that a wrong one cannot refuse
// for ever. Pure. Thread: owner. Never allocates.

#include <array>
#include <cstdint>

#include "schemas/base/time.hpp"

namespace moetier::workers {

class call_cost final {
 public:
  duration_ns predict(std::uint32_t rows) const noexcept;
  void observe(std::uint32_t rows, duration_ns took) noexcept;
  void doubt(std::uint32_t rows) noexcept;  // a call was refused by this prediction alone

 private:
  static constexpr std::uint32_t k_sure = 4;
  struct point {
    std::uint64_t rows = 0;  // mean of what was observed, in 1/16
    duration_ns took = 0;    // mean, of the first ones the least
    std::uint32_t seen = 0;  // up to k_sure
    bool known() const noexcept { return seen >= k_sure; }
  };
  static constexpr std::size_t k_points = 33;  // by bit width of rows
  std::array<point, k_points> points_{};
};

}  // namespace moetier::workers
