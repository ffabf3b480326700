#pragma once
// A line for the log, as the core says it: what happened, to whom, and one sentence for people. The
// shell adds the clock and what it knows of the tier. Thread: any (a value).

#include <cstdint>
#include <string>

#include "schemas/base/ids.hpp"

namespace moetier::coordinator {

struct log_subject {
  std::string worker{};  // its name; empty = no worker's line
  session_id session{};  // 0 = no session's
};

struct log_event {
  enum class level : std::uint8_t { debug, info, warn, error } severity = level::info;
  std::string event;
  std::string detail;
  log_subject about{};
};

}  // namespace moetier::coordinator
