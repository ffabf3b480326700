#include "actors/cli/latency.hpp"

#include <algorithm>
#include <numeric>

#include "schemas/base/assert.hpp"

namespace moetier::cli {

latency_figures figures_of(std::vector<std::uint64_t> times_ns) {
  MOETIER_ASSERT(!times_ns.empty());
  std::sort(times_ns.begin(), times_ns.end());
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000.0; };
  // The smallest time that at least so many of a thousand do not exceed.
  const auto rank = [&](std::size_t per_mille) {
    const std::size_t n = times_ns.size();
    return us(times_ns[std::max<std::size_t>(1, (n * per_mille + 999) / 1000) - 1]);
  };
  const std::uint64_t sum = std::accumulate(times_ns.begin(), times_ns.end(), std::uint64_t{0});
  return {.min = us(times_ns.front()),
          .mean = static_cast<double>(sum) / 1000.0 / static_cast<double>(times_ns.size()),
          .p50 = rank(500),
          .p90 = rank(900),
          .p99 = rank(990),
          .p999 = rank(999),
          .max = us(times_ns.back())};
}

nlohmann::ordered_json latency_json(const latency_figures& f) {
  return {{"min", f.min}, {"mean", f.mean}, {"p50", f.p50}, {"p90", f.p90},
          {"p99", f.p99}, {"p999", f.p999}, {"max", f.max}};
}

}  // namespace moetier::cli
