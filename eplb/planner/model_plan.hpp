#pragma once
// The plan of all layers of a model from their loads: cold, or by repairing a plan that is there;
// with what it gains per layer. Thread: any (pure functions).

#include <cstdint>
#include <string_view>
#include <vector>

#include "eplb/plan_draft.hpp"
#include "eplb/plan_file.hpp"
#include "eplb/slot_layout.hpp"
#include "schemas/base/error.hpp"

namespace moetier::eplb {

struct model_loads {
  std::uint32_t experts = 0;
  std::vector<layer_id> layers;                    // rising
  std::vector<std::vector<std::uint64_t>> counts;  // [layer][expert]
};

enum class layer_method : std::uint8_t { window_wrap, group_wrap, greedy_swap, kept, repaired };
std::string_view layer_method_name(layer_method m) noexcept;

struct layer_gain {
  layer_id layer;
  bool loaded = false;              // without load there is nothing to balance
  double balancedness_without = 1;  // every expert once, in order
  double balancedness_before = 1;   // of the plan that was there
  double balancedness = 1;
  double bound = 0;          // of the fullest worker, in the loads' unit
  double starved_bound = 0;  // the same, tighter where slots are few
  double percent_of_optimal = 100;
  double percent_of_starved = 100;
  std::uint32_t copies = 0;            // experts new on a worker; 0 without a plan before
  std::uint32_t copies_reference = 0;  // what the reference greedy would have copied instead
  layer_method method = layer_method::window_wrap;
};

struct model_plan {
  plan_draft draft;
  std::vector<plan_move> moves;  // against the plan before
  std::vector<layer_gain> gains;
};

// placement_invalid: fewer slots than experts, loads beyond the limits.
expected<model_plan> plan_cold(const model_loads& loads, const slot_layout& layout,
                               std::uint32_t min_replicas = 1);

struct repair_budget {
  std::uint32_t copies_per_layer = 8;
  std::uint64_t copies_total = ~std::uint64_t{0};  // layers by gain per copy until it is spent
};
// placement_invalid where the plan before is of other experts or layers.
expected<model_plan> plan_by_repair(const model_loads& loads, const plan_draft& before,
                                    const repair_budget& budget);

// The gains of a plan as it is.
expected<model_plan> judge_plan(const model_loads& loads, const plan_draft& plan);

}  // namespace moetier::eplb
