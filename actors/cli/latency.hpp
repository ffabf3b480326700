#pragma once
// The usual figures of many times: min, mean and percentiles by rank. Thread: any (values).

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

namespace moetier::cli {

struct latency_figures {  // microseconds
  double min = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
};

// Requires: at least one time.
latency_figures figures_of(std::vector<std::uint64_t> times_ns);

// min, mean, p50, p90, p99, p999, max by these names.
nlohmann::ordered_json latency_json(const latency_figures& figures);

}  // namespace moetier::cli
