#pragma once
// The coordinator's metrics: a tier_view as Prometheus text. The only place that names them; a
// worker's series exist exactly as long as the view shows that worker. Pure, called per scrape.
// Thread: any.

#include <cstdint>
#include <optional>
#include <string>

#include "actors/http/border_probe.hpp"
#include "coordinator/core/tier_view.hpp"
#include "coordinator/gateway/gateway.hpp"
#include "coordinator/rpc/rpc_meter.hpp"

namespace moetier::http {

// What the view does not show.
struct coordinator_counters {
  std::uint64_t log_lines_dropped = 0;
  std::uint64_t mailbox_depth = 0;
  std::uint64_t calls_overloaded = 0;  // of sessions that are open, by the gateway
  border_figures border{};
  std::optional<double> io_thread_cpu_seconds{};
  coordinator::rpc_reading rpc{};
  std::optional<coordinator::gateway::reading> gateway{};
};

std::string coordinator_metrics(const coordinator::tier_view& view,
                                const coordinator_counters& counters);

}  // namespace moetier::http
