#pragma once
// A coordinator process: reads the model's description, takes the durable record, and puts actor,
// RPC server, gateway and HTTP around the core; serves until it is told to stop. It holds no
// weights. Thread: owner (main).

#include <functional>

#include "actors/config/loader.hpp"
#include "actors/log/event_log.hpp"
#include "actors/process/stop_signal.hpp"
#include "actors/roles/listening.hpp"
#include "schemas/base/error.hpp"

namespace moetier::roles {

// `loaded`: with its origins, for /debug/config. Returns when everything has ended; an error is why
// it could not start or go on.
expected<void> run_coordinator(const config::loaded& loaded, event_log& log, stop_signal& stop,
                               const std::function<void(const listening&)>& on_listening);

}  // namespace moetier::roles
