#pragma once
// Errors of the readers of input files, for whoever turns an error into an exit code. Thread: any.

#include "schemas/base/error.hpp"

namespace moetier::config {

// A file beyond a reader's limit is as bad as a malformed one; elsewhere limit_exceeded is a
// request that asked for too much. The sentence stays: it names the limit.
inline error of_input_file(error e) {
  if (e.why == reason::limit_exceeded) e.why = reason::file_malformed;
  return e;
}

}  // namespace moetier::config
