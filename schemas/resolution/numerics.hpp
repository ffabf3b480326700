#pragma once
// Versions of the arithmetic whose bits sources and workers must share. Raise one by hand, in the
// commit that changes results: members with different versions refuse to serve together.
// Thread: any (constants).

#include <cstdint>

namespace moetier::resolution {

inline constexpr std::uint32_t k_numerics_routing = 1;    // keys, ties, weights of route()
inline constexpr std::uint32_t k_numerics_quantiser = 1;  // codes and scales of quantised rows
inline constexpr std::uint32_t k_numerics_combine = 1;    // order and rounding of sums

}  // namespace moetier::resolution
