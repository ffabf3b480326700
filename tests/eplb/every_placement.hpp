#pragma once
// The least limit of a small layer over all placements, each split exactly. Slots of a worker rise;
// the search stops where the experts left over no longer fit. Thread: owner.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "eplb/split/exact_split.hpp"

namespace moetier::eplb {

class every_placement final {
 public:
  every_placement(const std::vector<std::uint64_t>& w, const slot_layout& layout)
      : w_(w), layout_(layout), slots_(layout.slots(), -1), held_(w.size(), 0) {
    try_slot(0);
  }
  double least() const { return least_; }

 private:
  void try_slot(std::uint32_t s) {
    const auto missing = static_cast<std::size_t>(std::count(held_.begin(), held_.end(), 0));
    if (missing > layout_.slots() - s) return;
    if (s == layout_.slots()) {
      least_ = std::min(least_, split_.solve({.layout = &layout_, .slots = slots_, .loads = w_}));
      return;
    }
    const std::uint32_t first = layout_.first(layout_.worker_of(s));
    for (auto e = s == first ? 0 : slots_[s - 1] + 1; e < static_cast<std::int32_t>(w_.size());
         ++e) {
      slots_[s] = e;
      ++held_[static_cast<std::size_t>(e)];
      try_slot(s + 1);
      --held_[static_cast<std::size_t>(e)];
    }
  }

  const std::vector<std::uint64_t>& w_;
  const slot_layout& layout_;
  std::vector<std::int32_t> slots_;
  std::vector<int> held_;
  exact_split split_;
  double least_ = 1e300;
};

}  // namespace moetier::eplb
