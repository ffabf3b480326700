#pragma once
// Time as a value: pure code gets `time_ns` handed in and never asks a clock. All times are
// monotonic nanoseconds of one process; they are never compared across processes (the wire carries
// remaining budgets instead). Thread: any.

#include <cstdint>

namespace moetier {

using time_ns = std::uint64_t;      // a point, since an arbitrary start
using duration_ns = std::uint64_t;  // a length

inline constexpr duration_ns k_microsecond = 1'000;
inline constexpr duration_ns k_millisecond = 1'000'000;
inline constexpr duration_ns k_second = 1'000'000'000;

// The monotonic clock of this process. Only shells call it; cores get its value.
time_ns monotonic_now() noexcept;

}  // namespace moetier
