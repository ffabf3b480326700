#pragma once
// How `bench kernels` takes a time: calls are grouped until one group takes a tenth of a
// millisecond, then groups are timed and the median is kept. Thread: owner.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schemas/base/time.hpp"

namespace moetier::cli {

// The median over `repeat` groups of the ns that one call of `form` takes per unit of its work.
template <class Form>
double median_ns(std::uint32_t repeat, double units, Form&& form) {
  constexpr std::uint64_t k_group_ns = 100'000;
  const auto timed = [&](std::uint64_t calls) {
    const time_ns began = monotonic_now();
    for (std::uint64_t i = 0; i < calls; ++i) form();
    return monotonic_now() - began;
  };
  std::uint64_t calls = 1;
  while (timed(calls) < k_group_ns) calls *= 2;
  std::vector<std::uint64_t> times(repeat);
  for (std::uint64_t& t : times) t = timed(calls);
  std::nth_element(times.begin(), times.begin() + repeat / 2, times.end());
  return static_cast<double>(times[repeat / 2]) / static_cast<double>(calls) / units;
}

}  // namespace moetier::cli
