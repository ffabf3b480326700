#include "eplb/partition.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace moetier::eplb {
namespace {

// `each` = the fewest slots of every worker that hold all experts. Where they do not divide evenly
// that many need replicas.
std::string without_replicas(std::uint32_t experts, const resolution::deployment& d,
                             std::uint32_t each) {
  const bool even = experts % d.workers == 0;
  std::string remedy = fmt::format("give each worker {} slots", each);
  if (!even) {
    remedy = fmt::format("give each worker at least {} slots, with replicas", each);
  } else if (d.num_slots > experts) {
    remedy += ", or turn replicas on";
  }
  return fmt::format("{} slots per layer over all workers; without replicas it takes {}: {}",
                     d.num_slots, experts, remedy);
}

}  // namespace

expected<resolution::verdict> check_partition(std::uint32_t experts,
                                              const resolution::deployment& d,
                                              bool uneven_allowed) {
  const auto invalid = [&](const std::string& remedy) {
    return fail(reason::partition_invalid, experts, d.workers, remedy);
  };
  const std::uint32_t least = std::max(experts, d.workers);
  const std::uint32_t each = (least + d.workers - 1) / d.workers;
  if (d.eplb) {
    if (d.num_slots < least)
      return invalid(
          fmt::format("{} slots per layer over all workers are too few; give each worker at least "
                      "{}, {} in all",
                      d.num_slots, each, each * d.workers));
  } else {
    if (experts < d.workers)
      return invalid(
          fmt::format("give at most {} workers, or {} slots with replicas", experts, d.workers));
    if (d.num_slots != experts) return invalid(without_replicas(experts, d, each));
  }
  const bool listed = !d.slots_per_worker.empty();
  if (resolution::slots_uniform(d) || (uneven_allowed && (listed || !d.eplb)))
    return resolution::verdict::yes();
  return resolution::verdict::no(resolution::reject_reason::slots_not_divisible,
                                 resolution::uneven_remedy(experts, d.workers, d.num_slots));
}

}  // namespace moetier::eplb
