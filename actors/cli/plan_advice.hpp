#pragma once
// Whether separating experts from attention pays, from four times and the network: how many
// micro-batches hide the way, how many attention GPUs a worker serves, what its network allows; or
// "stay colocated" with the reason. Thread: any (a pure function).

#include <cstdint>
#include <string>

#include "actors/cli/plan_options.hpp"
#include "schemas/base/error.hpp"

namespace moetier::cli {

struct plan_advice {
  bool colocated = false;
  std::string why;                  // of staying colocated
  std::uint32_t micro_batches = 0;  // 1 to 4
  double layer_us = 0;              // a layer takes, pipelined
  double layer_limit_us = 0;        // and may take
  double ratio = 0;                 // attention GPUs per worker, by time
  double ratio_network = 0;         // and by the worker's network
};

// reason::config_invalid names what is not given.
expected<plan_advice> advise(const advise_options& o);
std::string advice_text(const plan_advice& a);

}  // namespace moetier::cli
