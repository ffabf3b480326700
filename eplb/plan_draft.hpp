#pragma once
// A plan as somebody proposes it, before anybody has judged it: plain lists, as a file or a planner
// gives them. The validator is the only way from here to a commit. Thread: any (a value).

#include <cstdint>
#include <vector>

#include "schemas/base/ids.hpp"

namespace moetier::eplb {

struct draft_layer {
  layer_id layer;
  std::vector<std::int32_t> slots;   // expert by slot, worker after worker; -1 = empty
  std::vector<std::uint32_t> units;  // shares of 1/65,536 by slot; empty = even

  bool operator==(const draft_layer&) const = default;
};

struct plan_draft {
  std::uint32_t experts = 0;
  std::vector<std::uint32_t> slots_per_worker;
  std::vector<draft_layer> layers;  // rising ids

  bool operator==(const plan_draft&) const = default;
};

}  // namespace moetier::eplb
