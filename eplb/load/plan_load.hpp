#pragma once
// The load that a repair plans from: the last window and the faded mean of all, in equal parts. The
// window alone takes the noise of its sources for drift, the mean alone lags behind: over the drifting
// traces of `bench plan` the blend makes a fifth to a third fewer copies than the window for the same
// balance. Thread: any (a pure function).

#include <cstdint>
#include <span>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {

// `faded` is times 256, as load_history keeps it; so is half of the result. Requires: equal sizes,
// loads below 2^54.
inline void plan_load(std::span<const std::uint64_t> window, std::span<const std::uint64_t> faded,
                      std::span<std::uint64_t> into) noexcept {
  MOETIER_ASSERT(window.size() == faded.size() && window.size() == into.size());
  for (std::size_t e = 0; e < into.size(); ++e) into[e] = 256 * window[e] + faded[e];
}

}  // namespace moetier::eplb
