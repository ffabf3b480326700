#pragma once
// Experts over workers without replicas: base = E div W slots each, the first E mod W workers one
// more, so that slot numbers and expert numbers are the same. Whether a number of slots can be
// divided at all is judged here too, with what to do instead. Thread: any (values, pure).

#include <cstdint>

#include "schemas/base/error.hpp"
#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/verdict.hpp"

namespace moetier::eplb {

struct partition {
  std::uint32_t experts = 0;  // E
  std::uint32_t workers = 1;  // W

  // Requires: w < workers.
  constexpr std::uint32_t size(std::uint32_t w) const noexcept {
    return experts / workers + (w < experts % workers ? 1 : 0);
  }
  constexpr std::uint32_t first(std::uint32_t w) const noexcept {
    const std::uint32_t longer = experts % workers;
    return w * (experts / workers) + (w < longer ? w : longer);
  }
  // Requires: slot < experts.
  constexpr std::uint32_t worker_of(std::uint32_t slot) const noexcept {
    const std::uint32_t base = experts / workers;
    const std::uint32_t longer = experts % workers;
    const std::uint32_t in_longer = longer * (base + 1);
    return slot < in_longer ? slot / (base + 1) : longer + (slot - in_longer) / base;
  }
};

// Whether `d.num_slots` slots can hold `experts` experts on its workers. reason::partition_invalid
// with the remedy where nothing could: fewer experts than workers without replicas, fewer slots
// than experts or workers with them, other slots than experts without. Rejected as
// slots_not_divisible, with the remedy, where workers would get different numbers and
// `uneven_allowed` (both backend and carrier take them) is false; with replicas uneven slots must
// also be listed worker by worker. Requires: a checked deployment.
expected<resolution::verdict> check_partition(std::uint32_t experts,
                                              const resolution::deployment& d, bool uneven_allowed);

}  // namespace moetier::eplb
