#pragma once
// What the gateway makes for a session (a thread, banks, queues) may lack memory or a thread: that
// costs the session that is being opened, not the coordinator. Thread: any.

#include <new>
#include <system_error>

#include "schemas/base/no_credit.hpp"

namespace moetier::coordinator {

// When a session that found no room at the gateway may be asked for again.
inline constexpr duration_ns k_session_pause = 100 * k_millisecond;

// What `make` returns, an expected; reason::no_credit when it threw for lack of memory or threads.
template <class Make>
auto of_scarce(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return no_credit("the gateway has no memory for one more session", k_session_pause);
  } catch (const std::system_error&) {
    return no_credit("the gateway has no thread for one more session", k_session_pause);
  }
}

}  // namespace moetier::coordinator
