#include "eplb/load/drift.hpp"

#include <cmath>
#include <numbers>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

double sum_of(std::span<const std::uint64_t> a) noexcept {
  double sum = 0;
  for (const std::uint64_t v : a) sum += static_cast<double>(v);
  return sum;
}

}  // namespace

double drift(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) noexcept {
  MOETIER_ASSERT(a.size() == b.size());
  const double all_a = sum_of(a);
  const double all_b = sum_of(b);
  if (all_a == 0 || all_b == 0) return 0;
  double apart = 0;
  for (std::size_t e = 0; e < a.size(); ++e)
    apart += std::abs(static_cast<double>(a[e]) / all_a - static_cast<double>(b[e]) / all_b);
  return apart / 2;
}

double drift_of_sampling(std::span<const std::uint64_t> a, double count_a,
                         double count_b) noexcept {
  const double all = sum_of(a);
  if (all == 0 || count_a <= 0 || count_b <= 0) return 0;
  double sum = 0;
  for (const std::uint64_t v : a) {
    const double p = static_cast<double>(v) / all;
    sum += std::sqrt(2 / std::numbers::pi * p * (1 - p) * (1 / count_a + 1 / count_b));
  }
  return sum / 2;
}

bool is_switch(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
               double count_b) noexcept {
  const double apart = drift(a, b);
  return apart > k_switch_drift && apart > 2 * drift_of_sampling(a, sum_of(a), count_b);
}

}  // namespace moetier::eplb
