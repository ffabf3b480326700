#include "kernels/reference/slot_count.hpp"

#include <algorithm>

namespace moetier::kernels {

bool can_count(const slot_count_args& args) noexcept {
  return args.slot_count >= 1 && args.slot_count <= k_count_slots_max && args.counts != nullptr &&
         args.bad_entries != nullptr && (args.slots != nullptr || args.entry_count == 0);
}

slot_count_status reference::count_slots(const slot_count_args& args) noexcept {
  if (!can_count(args)) return slot_count_status::bad_problem;
  std::fill_n(args.counts, args.slot_count, 0u);
  *args.bad_entries = 0;
  for (std::uint32_t i = 0; i < args.entry_count; ++i) {
    const std::int32_t slot = args.slots[i];
    if (slot == -1) continue;
    if (slot < 0 || static_cast<std::uint32_t>(slot) >= args.slot_count) {
      ++*args.bad_entries;
    } else {
      ++args.counts[slot];
    }
  }
  return slot_count_status::ok;
}

}  // namespace moetier::kernels
