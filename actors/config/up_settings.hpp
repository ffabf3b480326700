#pragma once
// The settings as `moetier up` uses them: it runs a whole tier, so it lets the system choose ports
// and keeps a state directory of its own where nobody said otherwise, and it gives its workers
// their names and their coordinator itself. What was given is obeyed, or its origin says that `up`
// ignores it. --print-config and the supervisor read the same value. Thread: any (pure functions).

#include <cstdint>
#include <string>
#include <vector>

#include "actors/config/loader.hpp"

namespace moetier::config {

struct up_settings {
  loaded tier;                       // an empty coordinator.state_dir = a fresh one, removed at end
  std::vector<std::string> ignored;  // "worker.name (tier.yaml:3)": given, and of no effect
  bool workers_given = false;        // coordinator.workers is a wish, not a default
};

// Requires: `given` is of load().
up_settings up_settings_of(loaded given);

// How many workers run: those of the plan file, if there is one. reason::config_invalid where the
// user named another number than the plan has.
expected<std::uint32_t> workers_of_plan(const up_settings& s, std::size_t planned);

// Where worker@number of `up` shows its pages: the coordinator has http.listen itself, so the ports
// behind it; a free one for port 0. reason::config_invalid where the ports end.
expected<std::string> worker_http_listen(const settings& s, std::uint32_t number);

}  // namespace moetier::config
