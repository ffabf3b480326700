#pragma once
// A layer's plan from nothing but its loads: window-wrap where it applies. Else the better of two:
// group-wrap, where slots are too few; and the greedy without doubled experts, swapped, split
// exactly and repaired. Owner keeps one for many layers.
// Thread: owner.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "eplb/planner/repair.hpp"
#include "eplb/planner/window_wrap.hpp"
#include "schemas/base/error.hpp"

namespace moetier::eplb {

enum class plan_method : std::uint8_t { window_wrap, group_wrap, greedy_swap };
std::string_view plan_method_name(plan_method m) noexcept;

struct planned_layer {
  std::vector<std::int32_t> slots;   // expert by slot, -1 = empty
  std::vector<std::uint32_t> units;  // of 1/65,536 by slot
  plan_method method = plan_method::window_wrap;
};

class cold_planner final {
 public:
  // placement_invalid: fewer slots than experts, or loads beyond the limits. A min_replicas above 1
  // fills spare slots with experts that have one replica first; what it cannot meet is for the
  // caller to count.
  expected<planned_layer> plan(std::span<const std::uint64_t> loads, const slot_layout& layout,
                               std::uint32_t min_replicas = 1);

 private:
  planned_layer greedy(std::span<const std::uint64_t> loads, const slot_layout& layout,
                       spare_fill fill);

  repairer repairer_;
  exact_split split_;
};

// Load of each worker under these shares, in the loads' unit.
std::vector<double> planned_loads(std::span<const std::uint64_t> loads, const slot_layout& layout,
                                  std::span<const std::int32_t> slots,
                                  std::span<const std::uint32_t> units);

}  // namespace moetier::eplb
