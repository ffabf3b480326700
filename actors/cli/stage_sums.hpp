#pragma once
// Where the workers' time went, as their /metrics tell it: the sums of their stage histograms, over
// all calls since they started. The difference of two is what happened between. Thread: any (a
// value); read_stage_sums: owner.

#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct stage_sums {    // nanoseconds, of all calls
  double receive = 0;  // from a call's header to its last byte
  double wait = 0;     // until the engine took it up
  double group = 0;    // records read, entries sorted by slot
  double compute = 0;  // both products and what lies between
  double give_back = 0;
  double calls = 0;  // a number

  double held() const noexcept { return receive + wait + group + compute + give_back; }
  stage_sums& operator+=(const stage_sums& other) noexcept;
  stage_sums operator-(const stage_sums& other) const noexcept;
};

// Of one worker's metrics page. A worker that has computed nothing yet has no such lines: zeros.
stage_sums stage_sums_in(std::string_view metrics);

// Of all workers together, by their HTTP addresses (HOST:PORT).
expected<stage_sums> read_stage_sums(const std::vector<std::string>& workers);

}  // namespace moetier::cli
