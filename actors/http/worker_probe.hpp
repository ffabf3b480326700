#pragma once
// The worker's metrics: what its core, engine and carrier say of themselves, as Prometheus text.
// The only place that names them. Pure, called per scrape. Thread: any.

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/base/ids.hpp"
#include "transport/communication.hpp"
#include "workers/core/core.hpp"
#include "workers/device/device_bill.hpp"
#include "workers/engine/waiting_calls.hpp"
#include "workers/engine/engine_meter.hpp"
#include "workers/store/load_meter.hpp"

namespace moetier::http {

struct worker_layer_rows {
  layer_id layer;
  std::uint64_t rows = 0;
};

struct worker_figures {
  workers::worker_summary core;
  std::uint64_t rows_total = 0;
  workers::engine_reading engine;
  workers::load_reading loads;
  std::vector<worker_layer_rows> layers;  // since the generation began here
  bool on_device = false;
  std::uint64_t device_errors = 0;
  transport::carrier_counters carrier;
  workers::queue_figures queue{};
  workers::device_bill device{};  // zeros without a device
  std::uint64_t log_lines_dropped = 0;
};

std::string worker_metrics(const worker_figures& figures);

}  // namespace moetier::http
