#pragma once
// The usual figures of many times: min, mean and percentiles by rank. Thread: any (values).

#include <cstdint>
#include <vector>

namespace moetier::cli {

struct latency_figures {  // microseconds
  double min = 0, mean = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
};

// Requires: at least one time.
latency_figures figures_of(std::vector<std::uint64_t> times_ns);

}  // namespace moetier::cli
