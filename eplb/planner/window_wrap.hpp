#pragma once
// Window-wrap, the cold planner: where slots >= experts + workers - 1 and slot counts differ by at
// most one, a placement and shares under which every worker gets exactly the mean load. Experts are
// sorted by load; each worker takes the window of neighbours that lies just under the mean, and the
// missing part of the next one, whose rest goes back. At most one expert is split per worker.
// All amounts are integers: loads times the number of workers. Thread: any (pure functions).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

// What empty slots take, with share 0: the largest load per replica, or experts with one replica
// first.
enum class spare_fill : std::uint8_t { load, survival };

struct wrapped_layer {
  std::vector<std::int32_t> slots;     // expert by slot, rising inside a worker; -1 = empty
  std::vector<std::uint64_t> amounts;  // by slot; those of an expert sum to load * workers
};

// Nothing where wrap does not apply. No load at all counts as one each (amounts are then of those).
// Requires: loads not empty, every load * workers < 2^63.
std::optional<wrapped_layer> window_wrap(std::span<const std::uint64_t> loads,
                                         const slot_layout& layout,
                                         spare_fill fill = spare_fill::load);

// Fills what is empty (-1) without doubling; amounts of the new replicas are 0 already.
void fill_spares(std::span<const std::uint64_t> loads, const slot_layout& layout, spare_fill fill,
                 std::span<std::int32_t> slots);

// Units of 1/65,536 by slot of a whole layer: every expert's amounts rounded.
std::vector<std::uint32_t> units_of(std::span<const std::int32_t> slots,
                                    std::span<const std::uint64_t> amounts, std::uint32_t experts);

}  // namespace moetier::eplb
