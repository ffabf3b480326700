#pragma once
// The flags of `moetier plan`: what each is called, takes and means. Thread: owner.

#include "actors/cli/plan_options.hpp"

namespace CLI {
class App;
}

namespace moetier::cli {

// `into` outlives the app.
void add_plan_flags(CLI::App& plan, plan_options& into);

}  // namespace moetier::cli
