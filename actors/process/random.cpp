#include "actors/process/random.hpp"

#include <sys/random.h>

#include "schemas/base/assert.hpp"

namespace moetier {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  // At most 256 bytes are never interrupted and never short once the pool is seeded.
  const ssize_t got = ::getrandom(&bits, sizeof bits, 0);
  MOETIER_ASSERT(got == static_cast<ssize_t>(sizeof bits));
  return bits;
}

}  // namespace moetier
