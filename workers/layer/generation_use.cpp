#include "workers/layer/generation_use.hpp"

#include "schemas/base/assert.hpp"

namespace moetier::workers {

generation_use::use& generation_use::of(generation_number generation) {
  for (use& u : uses_) {
    if (u.generation == generation) return u;
  }
  for (use& u : uses_) {
    if (u.entered == 0) {
      u = use{.generation = generation};
      return u;
    }
  }
  MOETIER_ASSERT(!"at most two generations are in use");
  return uses_[0];
}

void generation_use::layer_enter(const layer_visit& visit) { ++of(visit.generation).entered; }

void generation_use::layer_ready(const layer_visit& visit) { ++of(visit.generation).reading; }

void generation_use::weights_done(const layer_visit& visit) {
  use& u = of(visit.generation);
  MOETIER_ASSERT(u.reading > 0);
  --u.reading;
}

void generation_use::layer_exit(const layer_visit& visit) {
  use& u = of(visit.generation);
  MOETIER_ASSERT(u.entered > 0 && u.entered > u.reading);
  --u.entered;
}

std::uint64_t generation_use::held_before(generation_number than) const noexcept {
  std::uint64_t held = 0;
  for (const use& u : uses_) {
    if (u.generation < than) held += u.entered;
  }
  return held;
}

}  // namespace moetier::workers
