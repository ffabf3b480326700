#include "eplb/slot_layout.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "eplb/limits.hpp"
#include "eplb/placement.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {

expected<slot_layout> slot_layout::make(std::span<const std::uint32_t> slots_per_worker) {
  if (slots_per_worker.empty() || slots_per_worker.size() > k_plan_workers_max) {
    return fail(reason::placement_invalid,
                fmt::format("{} workers; 1 to {} are allowed", slots_per_worker.size(),
                            k_plan_workers_max));
  }
  slot_layout l;
  for (std::uint32_t g = 0; g < slots_per_worker.size(); ++g) {
    if (slots_per_worker[g] == 0 || slots_per_worker[g] > k_slots_per_worker_max) {
      return fail(reason::placement_invalid,
                  fmt::format("worker {} has {} slots per layer; 1 to {} are allowed", g,
                              slots_per_worker[g], k_slots_per_worker_max));
    }
    l.first_.push_back(l.first_.back() + slots_per_worker[g]);
    l.worker_of_.insert(l.worker_of_.end(), slots_per_worker[g], g);
  }
  if (l.slots() > k_slots_per_layer_max) {
    return fail(reason::placement_invalid,
                fmt::format("{} slots per layer; at most {}", l.slots(), k_slots_per_layer_max));
  }
  return l;
}

expected<slot_layout> slot_layout::even(std::uint32_t workers, std::uint32_t slots) {
  std::vector<std::uint32_t> each(workers, workers == 0 ? 0 : slots / workers);
  for (std::uint32_t g = 0; workers != 0 && g < slots % workers; ++g) ++each[g];
  return make(each);
}

slot_layout slot_layout::of(const placement& p) {
  std::vector<std::uint32_t> each;
  for (const worker_span& s : p.spans()) each.push_back(s.slots);
  auto made = make(each);
  MOETIER_ASSERT(made.has_value());  // a placement has been checked against the same limits
  return std::move(*made);
}

std::uint32_t slot_layout::count_least() const noexcept {
  std::uint32_t least = count(0);
  for (std::uint32_t g = 1; g < workers(); ++g) least = std::min(least, count(g));
  return least;
}

bool slot_layout::uniform() const noexcept { return count_least() * workers() == slots(); }

bool holds(const slot_layout& layout, std::span<const std::int32_t> slots, std::uint32_t g,
           std::uint32_t expert) noexcept {
  const auto own = slots.subspan(layout.first(g), layout.count(g));
  return std::find(own.begin(), own.end(), static_cast<std::int32_t>(expert)) != own.end();
}

}  // namespace moetier::eplb
