#pragma once
// The coordinator's metrics: a tier_view as Prometheus text. The only place that names them; a
// worker's series exist exactly as long as the view shows that worker. Pure, called per scrape.
// Thread: any.

#include <cstdint>
#include <string>

#include "actors/http/border_probe.hpp"
#include "coordinator/core/tier_view.hpp"

namespace moetier::http {

struct coordinator_counters {
  std::uint64_t log_lines_dropped = 0;
  std::uint64_t mailbox_depth = 0;
  std::uint64_t calls_overloaded = 0;  // of sessions that are open, by the gateway
  border_figures border{};
};

std::string coordinator_metrics(const coordinator::tier_view& view,
                                const coordinator_counters& counters);

}  // namespace moetier::http
