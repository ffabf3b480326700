#include "workers/engine/call_cost.hpp"

#include <algorithm>
#include <bit>

namespace moetier::workers {
namespace {

constexpr unsigned k_follow_shift = 3;  // a mean follows by an eighth of the difference
constexpr duration_ns k_outlier = 4;    // a thread that was not run says nothing of the call
constexpr unsigned k_doubt_shift = 3;
constexpr std::uint64_t k_row_unit = 16;

std::uint64_t toward(std::uint64_t mean, std::uint64_t seen) noexcept {
  if (seen >= mean) return mean + ((seen - mean) >> k_follow_shift);
  return mean - ((mean - seen) >> k_follow_shift);
}

}  // namespace

duration_ns call_cost::predict(std::uint32_t rows) const noexcept {
  const std::uint64_t at = rows * k_row_unit;
  const auto bucket = static_cast<std::size_t>(std::bit_width(rows));
  const point& own = points_[bucket];
  if (own.known() && own.rows == at) return own.took;
  const point* below = nullptr;  // the nearest known ones
  const point* above = nullptr;
  for (std::size_t b = bucket + 1; b-- > 0 && below == nullptr;) {
    if (points_[b].known() && points_[b].rows <= at) below = &points_[b];
  }
  for (std::size_t b = bucket; b < points_.size() && above == nullptr; ++b) {
    if (points_[b].known() && points_[b].rows > at) above = &points_[b];
  }
  if (below == nullptr) return above == nullptr ? 0 : above->took;
  if (above == nullptr) {
    // Beyond all that is known: at most in proportion.
    return below->rows == 0 ? below->took : below->took * at / below->rows;
  }
  if (above->took <= below->took) return below->took;
  return below->took +
         (above->took - below->took) * (at - below->rows) / (above->rows - below->rows);
}

void call_cost::observe(std::uint32_t rows, duration_ns took) noexcept {
  point& p = points_[static_cast<std::size_t>(std::bit_width(rows))];
  took = std::max<duration_ns>(took, 1);
  const std::uint64_t at = rows * k_row_unit;
  if (!p.known()) {
    p.took = p.seen == 0 ? took : std::min(p.took, took);
    p.rows = at;
    ++p.seen;
    return;
  }
  p.took = std::max<duration_ns>(toward(p.took, std::min(took, k_outlier * p.took)), 1);
  p.rows = toward(p.rows, at);
}

void call_cost::doubt(std::uint32_t rows) noexcept {
  for (std::size_t b = static_cast<std::size_t>(std::bit_width(rows)); b < points_.size(); ++b) {
    if (!points_[b].known()) continue;
    points_[b].took -= points_[b].took >> k_doubt_shift;
    return;
  }
  for (std::size_t b = static_cast<std::size_t>(std::bit_width(rows)); b-- > 0;) {
    if (!points_[b].known()) continue;
    points_[b].took -= points_[b].took >> k_doubt_shift;
    return;
  }
}

}  // namespace moetier::workers
