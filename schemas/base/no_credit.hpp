#pragma once
// A refusal for lack of room: reason::no_credit, and when to come again. OVERLOADED without a time
// to wait makes clients ask at once, so whoever refuses has to say both. Thread: any.

#include <string_view>
#include <utility>

#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"

namespace moetier {

inline unexpected_error no_credit(std::string_view what, duration_ns retry_after) {
  error e = make_error(reason::no_credit, what);
  e.retry_after_ns = retry_after;
  return unexpected_error(std::move(e));
}

}  // namespace moetier
