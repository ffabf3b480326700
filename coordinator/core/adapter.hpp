#pragma once
// An adapter as the core keeps it: what workers are told of it and who waits for it. Private to
// coordinator/core. Thread: owner.

#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/event.hpp"
#include "schemas/base/time.hpp"

namespace moetier::coordinator {

struct adapter {
  control::held_adapter held;
  bool complete = false;                    // sources have seen it listed once
  bool given_up = false;                    // its load failed: it goes
  std::vector<request_token> loading;       // loads not answered yet
  std::optional<request_token> drop_token;  // a drop not answered yet
  time_ns load_until = 0;                   // then a load that nobody confirmed has failed
  time_ns resend_at = 0;
  std::string problem;  // of the worker that refused it last

  bool dropping() const noexcept { return given_up || drop_token.has_value(); }
};

}  // namespace moetier::coordinator
