#pragma once
// The tier as JSON text for administrators and tools, made from the core's view. Each document
// names its schema; fields are only ever added to one. Numbers of 64 bits that name things travel
// as hex text, since JSON readers round them. Thread: any (pure functions).

#include <string>

#include "coordinator/core/tier_view.hpp"
#include "schemas/base/error.hpp"

namespace moetier::coordinator {

// moetier.status/1: epoch, generation, readiness with reasons, workers, sessions, rows by layer and
// worker (in the order of `workers`), the newest events, counters, and the path of the
// administrators' socket where there is one to tell.
std::string status_document(const tier_view& view, const std::string& admin_socket = {});

// moetier.placement/1: the committed plan as a plan file under "plan", with the rows that each slot
// has taken under "workers". reason::not_ready before the first commit.
expected<std::string> placement_document(const tier_view& view);

// moetier.experts/1: for each layer its experts, most rows first, with the rows of each replica;
// `worker` is an index into `workers`. No layers before the first commit.
std::string experts_document(const tier_view& view);

// moetier.environments/1: what each worker's machine and build said it can do.
std::string environments_document(const tier_view& view);

// moetier.adapters/1: whether the tier runs adapters, and each one with the workers that hold it.
std::string adapters_document(const tier_view& view);

}  // namespace moetier::coordinator
