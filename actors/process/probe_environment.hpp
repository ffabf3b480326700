#pragma once
// The one probing point: what this machine and this build can do, asked once when a worker starts
// and frozen. Nobody else looks at processors, files or libraries to choose anything; a GPU was
// asked when it was opened, and a worker without one has none, whatever the machine has. What
// cannot be told stays unknown. Thread: any; reads /proc and asks the system, so not on a layer's
// path.

#include <string>
#include <vector>

#include "actors/build_info.hpp"
#include "actors/config/settings.hpp"
#include "schemas/resolution/environment.hpp"
#include "workers/device/device_facts.hpp"

namespace moetier {

struct probe_inputs {
  const config::settings& settings;
  const build_info& build;
  std::vector<std::string> carriers;              // names that can be opened here, ascending
  const workers::device_facts* device = nullptr;  // null = the processor computes
};

resolution::environment probe_environment(const probe_inputs& inputs);

// Opens each carrier of this build once and closes it again: the names of those that opened,
// ascending. A worker that has opened its own already names that one instead.
std::vector<std::string> probe_carriers(const config::settings& settings);

}  // namespace moetier
