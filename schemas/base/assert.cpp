#include "schemas/base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace moetier {

void assertion_failed(const char* fact, const char* file, int line) noexcept {
  std::fprintf(stderr, "moetier: assertion failed: %s (%s:%d)\n", fact, file, line);
  std::abort();
}

}  // namespace moetier
