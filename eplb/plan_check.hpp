#pragma once
// The one validator of plans, asked before PREPARE and again in every worker: names the first rule
// that a plan breaks, with layer, slot, worker and expert. Wishes that may go unmet are counted
// apart. Thread: any (pure functions).

#include <cstdint>
#include <span>

#include "eplb/plan_draft.hpp"
#include "schemas/base/error.hpp"

namespace moetier::eplb {

// What the tier is that the plan is for.
struct plan_terms {
  std::span<const std::uint32_t> slots_per_worker;  // as registered
  std::span<const std::uint8_t> live{};             // by worker; empty = all
  std::span<const std::uint8_t> draining{};         // by worker; empty = none
  bool uneven_allowed = false;  // backend and carrier both take different slot counts
  // By layer and slot: its bytes are verified, or a copy of this plan brings them. Empty = all.
  std::span<const std::uint8_t> filled{};
  std::span<const std::uint64_t> loads{};  // [layer][expert]; empty = not checked
};

// reason::placement_invalid. Limits, slot counts as registered, uneven ones only where declared,
// layers rise, ids in range, no expert twice on a worker, every expert a live slot with bytes, no
// share for dead or draining workers, every expert's shares sum to 65,536.
expected<void> check_plan(const plan_draft& d, const plan_terms& t);

struct plan_wishes {
  std::uint32_t min_replicas = 1;
  std::span<const std::uint32_t> node_of_worker{};  // spread: replicas on different nodes
};
struct unmet_wishes {
  std::uint64_t experts_below_min_replicas = 0;  // over all layers
  std::uint64_t experts_on_one_node = 0;         // with several replicas
};
// Requires: d passes check_plan.
unmet_wishes unmet(const plan_draft& d, const plan_wishes& w);

}  // namespace moetier::eplb
