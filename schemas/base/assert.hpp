#pragma once
// Assertions that stay on in release builds (MOETIER_ASSERT) and those that only debug builds pay
// for (MOETIER_DEBUG_ASSERT, for hot loops). A failed assertion is a bug of ours: it prints the
// fact and aborts. Thread: any.

namespace moetier {

[[noreturn]] void assertion_failed(const char* fact, const char* file, int line) noexcept;

}  // namespace moetier

#define MOETIER_ASSERT(fact)                      \
  (static_cast<bool>(fact) ? static_cast<void>(0) \
                           : ::moetier::assertion_failed(#fact, __FILE__, __LINE__))

#ifdef NDEBUG
#define MOETIER_DEBUG_ASSERT(fact) static_cast<void>(0)
#else
#define MOETIER_DEBUG_ASSERT(fact) MOETIER_ASSERT(fact)
#endif
