#pragma once
// TensorRT-LLM's file of initial expert assignments: { "num_slots": S, "layer_updates_per_iter": 0,
// "initial_global_assignments": { "layer": [expert per slot, ...] } }. It knows no workers and no
// shares: reading sets even shares, writing drops them. Thread: any.

#include <cstdint>
#include <string>
#include <string_view>

#include "eplb/plan_draft.hpp"
#include "schemas/base/error.hpp"

namespace moetier::eplb {

// Whether a document is one of these, by its keys.
bool is_assignment_file(std::string_view text) noexcept;

// Slots are divided over `workers` as evenly as they go, the first ones one more. `experts` 0: the
// largest id that stands there, plus one. Errors name the place: wrong length, an expert that is
// missing or twice on a worker, online updates asked for.
expected<plan_draft> read_assignment_file(std::string_view text, std::string_view file_name,
                                          std::uint32_t workers, std::uint32_t experts);

struct assignment_text {
  std::string text;
  bool shares_lost = false;  // the plan splits some expert unevenly
};
// placement_invalid where a slot is empty: the form has no word for it.
expected<assignment_text> write_assignment_file(const plan_draft& d);

}  // namespace moetier::eplb
