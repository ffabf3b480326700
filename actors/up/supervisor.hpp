#pragma once
// `moetier up`: a whole tier on this machine as child processes, the coordinator first, then the
// workers; started again when they die, within restart.budget each; all ended with it. A worker
// that may not be started again is given up, and the tier goes on while the others serve
// everything. It waits for /readyz before it says ready. Nothing is left behind: children die with
// it, and a state directory of its own making is removed. Thread: owner (main).

#include <functional>
#include <string>
#include <vector>

#include "actors/config/up_settings.hpp"
#include "actors/log/event_log.hpp"
#include "actors/process/stop_signal.hpp"
#include "actors/roles/listening.hpp"
#include "schemas/base/error.hpp"

namespace moetier::up {

struct up_wish {
  std::string config_file;                    // handed on to the children
  std::vector<std::string> shared_arguments;  // flags that every child gets
};

struct up_state {
  roles::listening coordinator;
  std::vector<roles::listening> workers;
};

// The exit code: 0 when asked to stop, else that of the child that could not start or was missed,
// or 1 when a budget was spent. An error is why nothing was started. `on_ready` is called once.
expected<int> run_up(const config::up_settings& settings, const up_wish& wish, event_log& log,
                     stop_signal& stop, const std::function<void(const up_state&)>& on_ready);

}  // namespace moetier::up
