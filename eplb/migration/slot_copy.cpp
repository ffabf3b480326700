#include "eplb/migration/slot_copy.hpp"

#include <algorithm>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {

std::vector<slot_copy> copies_between(const slot_layout& layout, std::uint32_t layer_index,
                                      std::span<const std::int32_t> from,
                                      std::span<const std::int32_t> to) {
  MOETIER_ASSERT(from.size() == layout.slots() && to.size() == layout.slots());
  std::vector<slot_copy> copies;
  for (std::uint32_t s = 0; s < layout.slots(); ++s) {
    if (to[s] < 0 || to[s] == from[s]) continue;
    const auto e = static_cast<std::uint32_t>(to[s]);
    copies.push_back({layer_index, s, e, holds(layout, from, layout.worker_of(s), e)});
  }
  return copies;
}

std::uint32_t copy_count(const slot_layout& layout, std::span<const std::int32_t> from,
                         std::span<const std::int32_t> to) {
  const auto all = copies_between(layout, 0, from, to);
  return static_cast<std::uint32_t>(
      std::count_if(all.begin(), all.end(), [](const slot_copy& c) { return !c.inside_worker; }));
}

}  // namespace moetier::eplb
