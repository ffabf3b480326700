#pragma once
// Group-wrap, the cold planner for starved layers (slots < experts + workers - 1). Workers and
// experts are parted into experts + workers - slots groups; each holds as many experts as leave it
// wrappable, so window-wrap gives all of its workers exactly the group's mean. No placement has a
// lower limit than the best parting into such groups (see balance/starved_bound.hpp), so all there
// is to do is to lower the fullest group's mean. Thread: any (pure functions).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eplb/planner/window_wrap.hpp"
#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

struct grouped_layer {
  std::vector<std::int32_t> slots;   // expert by slot
  std::vector<std::uint32_t> units;  // of 1/65,536 by slot
};

// Nothing where window-wrap applies to the whole, or slot counts differ by more than one.
// Requires: slots >= loads.size() > 0, every load * workers < 2^63.
std::optional<grouped_layer> group_wrap(std::span<const std::uint64_t> loads,
                                        const slot_layout& layout,
                                        spare_fill fill = spare_fill::load);

}  // namespace moetier::eplb
