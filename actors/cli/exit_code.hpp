#pragma once
// The exit codes of `moetier`: documented, never changed. Thread: any.

#include "schemas/base/error.hpp"

namespace moetier::cli {

enum class exit_code : int {
  done = 0,
  failed = 1,     // ran, ended in a typed error
  usage = 2,      // usage or configuration
  unreached = 3,  // the coordinator
  refused = 4,    // refused or infeasible
  deadline = 5,
  degraded = 6,      // rows usable, some left out
  bad_input = 7,     // input file or model
  check_failed = 8,  // or not ready
  address_in_use = 9,
  device_lost = 10,  // a GPU failed under this process; a new one may use it
  internal = 70,
};

exit_code exit_code_of(const error& e) noexcept;

}  // namespace moetier::cli
