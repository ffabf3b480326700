#pragma once
// The flags of `moetier bench` and what lies below it: what each is called, takes and means.
// Thread: owner.

#include "actors/cli/command_line.hpp"

namespace CLI {
class App;
}

namespace moetier::cli {

// Adds the command `bench` with all of its own. `into` outlives the app.
void add_bench_flags(CLI::App& app, command_line& into);

}  // namespace moetier::cli
