#pragma once
// What separates two plans: the slots whose expert is new on its worker. An expert that moves
// inside its worker costs no bytes over any wire. Thread: any (values, pure functions).

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

struct slot_copy {
  std::uint32_t layer_index = 0;
  std::uint32_t slot = 0;
  std::uint32_t expert = 0;
  bool inside_worker = false;  // the worker has it in another slot of this layer

  bool operator==(const slot_copy&) const = default;
};

// Copies that turn `from` into `to` for one layer. Requires: both fit the layout.
std::vector<slot_copy> copies_between(const slot_layout& layout, std::uint32_t layer_index,
                                      std::span<const std::int32_t> from,
                                      std::span<const std::int32_t> to);
// Copies that need bytes from outside the worker: what a rebalance is counted by. Workers may
// differ in which slots they use.
std::uint32_t copy_count(const slot_layout& layout, std::span<const std::int32_t> from,
                         std::span<const std::int32_t> to);

}  // namespace moetier::eplb
