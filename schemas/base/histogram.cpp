#include "schemas/base/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "schemas/base/assert.hpp"

namespace moetier {

std::uint64_t histogram_reading::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::uint64_t histogram_reading::quantile(double share) const noexcept {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count())));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; wanted > 0 && i < bounds.size(); ++i) {
    seen += counts[i];
    if (seen >= wanted) return bounds[i];
  }
  return wanted == 0 ? 0 : bounds.back();
}

histogram_reading& histogram_reading::operator+=(const histogram_reading& other) {
  if (other.bounds.empty()) return *this;
  if (bounds.empty()) return *this = other;
  MOETIER_ASSERT(bounds == other.bounds);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum += other.sum;
  return *this;
}

histogram::histogram(std::span<const std::uint64_t> bounds) noexcept : size_(bounds.size()) {
  MOETIER_ASSERT(size_ >= 1 && size_ <= k_histogram_bounds_max);
  MOETIER_ASSERT(std::ranges::adjacent_find(bounds, std::greater_equal<>()) == bounds.end());
  std::copy(bounds.begin(), bounds.end(), bounds_.begin());
}

histogram_reading histogram::read() const {
  histogram_reading r{
      .bounds = {bounds_.begin(), bounds_.begin() + static_cast<std::ptrdiff_t>(size_)},
      .counts = std::vector<std::uint64_t>(size_ + 1),
      .sum = sum_.load(std::memory_order_relaxed)};
  for (std::size_t i = 0; i <= size_; ++i) r.counts[i] = counts_[i].load(std::memory_order_relaxed);
  return r;
}

}  // namespace moetier
