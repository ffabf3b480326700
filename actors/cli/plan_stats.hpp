#pragma once
// What a running tier says about the two times that advice needs of it, from its coordinator's
// /metrics: how long a worker holds a call, and the way there and back. They are means over the
// calls of thin clients since the coordinator began; a tier that served none says nothing.
// Thread: any.

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct stats_times {
  double experts_us = 0;
  double leg_us = 0;  // one way
  double calls = 0;
};

// "127.0.0.1:7402", "http://127.0.0.1:7402/metrics". reason::config_invalid,
// coordinator_unreached, not_ready.
expected<stats_times> times_of_tier(const std::string& url);
expected<stats_times> times_in(const std::string& metrics);

}  // namespace moetier::cli
