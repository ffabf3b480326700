#pragma once
// The edge between C and C++: the thread's last error, and the guard in which every function of
// moetier.h runs, so that nothing is thrown across it. Thread: any (state is per thread).

#include <exception>
#include <new>

#include "schemas/base/error.hpp"
#include "transport/client/abi/moetier.h"

namespace moetier::abi {

// Makes `why` this thread's last error and returns its status.
moetier_status set_last_error(error why) noexcept;
const moetier_error* last_error() noexcept;

// Runs `body`, which returns expected<void>.
template <class Body>
moetier_status guarded(Body&& body) noexcept {
  try {
    expected<void> done = body();
    return done ? MOETIER_OK : set_last_error(std::move(done.error()));
  } catch (const std::bad_alloc&) {
    return set_last_error(
        {.code = status::no_memory, .why = reason::memory_insufficient, .text = {}});
  } catch (const std::exception&) {
    return set_last_error({.code = status::internal, .why = reason::internal_error, .text = {}});
  }
}

}  // namespace moetier::abi
