#pragma once
// How many slots each worker has for a layer, and which worker a slot is of. Slots are numbered
// densely, worker after worker; spare slots do not count. Planners work on a layout and, per layer,
// on one list of experts by slot (-1 = empty). Thread: any (an immutable value).

#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::eplb {

class placement;

class slot_layout final {
 public:
  slot_layout() = default;
  // placement_invalid outside 1..k_plan_workers_max workers with 1..k_slots_per_worker_max slots.
  static expected<slot_layout> make(std::span<const std::uint32_t> slots_per_worker);
  static expected<slot_layout> even(std::uint32_t workers, std::uint32_t slots);
  static slot_layout of(const placement& p);

  std::uint32_t workers() const noexcept { return static_cast<std::uint32_t>(first_.size()) - 1; }
  std::uint32_t slots() const noexcept { return first_.back(); }
  // Requires: g < workers(), slot < slots().
  std::uint32_t first(std::uint32_t g) const noexcept { return first_[g]; }
  std::uint32_t count(std::uint32_t g) const noexcept { return first_[g + 1] - first_[g]; }
  std::uint32_t worker_of(std::uint32_t slot) const noexcept { return worker_of_[slot]; }
  std::uint32_t count_least() const noexcept;
  bool uniform() const noexcept;

  bool operator==(const slot_layout&) const = default;

 private:
  std::vector<std::uint32_t> first_{0};  // workers + 1
  std::vector<std::uint32_t> worker_of_;
};

// Whether worker g of a layer's slots holds the expert.
bool holds(const slot_layout& layout, std::span<const std::int32_t> slots, std::uint32_t g,
           std::uint32_t expert) noexcept;

}  // namespace moetier::eplb
