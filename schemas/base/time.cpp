#include "schemas/base/time.hpp"

#include <chrono>

namespace moetier {

time_ns monotonic_now() noexcept {
  return static_cast<time_ns>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::steady_clock::now().time_since_epoch())
                                  .count());
}

}  // namespace moetier
