#include "kernels/cuda/bench/clock_mark.hpp"

#include <algorithm>
#include <vector>

namespace moetier::kernels::cuda::bench {

double mhz_between(std::span<const clock_reading> before, std::span<const clock_reading> after) {
  std::vector<double> mhz;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const clock_reading& a = before[i];
    const clock_reading& b = after[i];
    if (a.ns == 0 || b.ns <= a.ns || b.cycles <= a.cycles) continue;
    mhz.push_back(1e3 * static_cast<double>(b.cycles - a.cycles) /
                  static_cast<double>(b.ns - a.ns));
  }
  if (mhz.empty()) return 0;
  std::nth_element(mhz.begin(), mhz.begin() + static_cast<std::ptrdiff_t>(mhz.size() / 2),
                   mhz.end());
  return mhz[mhz.size() / 2];
}

}  // namespace moetier::kernels::cuda::bench
