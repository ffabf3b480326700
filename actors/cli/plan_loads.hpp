#pragma once
// Expert loads from files that people have: safetensors counts, traces of expert ids, CSV. Whatever
// does not fit is an error with its place. Thread: any (owns nothing between calls).

#include <cstdint>
#include <string>

#include "actors/cli/plan_options.hpp"
#include "eplb/planner/model_plan.hpp"
#include "schemas/base/error.hpp"

namespace moetier::cli {

struct read_loads {
  eplb::model_loads loads;
  std::string told;         // one line: what was summed
};

// A file named .csv or that begins with the head's word is CSV, everything else safetensors.
expected<read_loads> read_plan_loads(const load_source& source);

// The head `layer,e0,e1,...` and a row of whole numbers per layer; rows of one layer are summed.
// `text` is the file's content, `file` names it in errors.
expected<read_loads> loads_from_csv(std::string_view text, const std::string& file,
                                    std::uint32_t experts);
// Tensors [layer, expert] or [step, layer, expert] (or as source.axes says) of whole numbers.
expected<read_loads> loads_from_counts(const load_source& source);
// Tensors `layerN` [rows, k] of expert ids; -1 asks for nothing.
expected<read_loads> loads_from_trace(const load_source& source);

}  // namespace moetier::cli
