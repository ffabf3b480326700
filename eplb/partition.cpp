#include "eplb/partition.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moetier::eplb {

expected<resolution::verdict> check_partition(std::uint32_t experts,
                                              const resolution::deployment& d,
                                              bool uneven_allowed) {
  const auto invalid = [&](const std::string& remedy) {
    return fail(reason::partition_invalid, experts, d.workers, remedy);
  };
  const std::uint32_t least = std::max(experts, d.workers);
  if (d.eplb) {
    if (d.num_slots < least)
      return invalid(fmt::format("{} slots per layer are too few; give at least {}", d.num_slots,
                                 (least + d.workers - 1) / d.workers * d.workers));
  } else {
    if (experts < d.workers)
      return invalid(
          fmt::format("give at most {} workers, or {} slots with replicas", experts, d.workers));
    if (d.num_slots != experts)
      return invalid(fmt::format("{} slots per layer without replicas; give {}, or turn them on",
                                 d.num_slots, experts));
  }
  const bool listed = !d.slots_per_worker.empty();
  if (resolution::slots_uniform(d) || (uneven_allowed && (listed || !d.eplb)))
    return resolution::verdict::yes();
  return resolution::verdict::no(resolution::reject_reason::slots_not_divisible,
                                 resolution::uneven_remedy(experts, d.workers, d.num_slots));
}

}  // namespace moetier::eplb
