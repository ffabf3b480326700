#include "kernels/routing/row_kernels.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace moetier::kernels {
namespace {

constexpr float k_none = -std::numeric_limits<float>::infinity();

std::uint32_t find_bad(const float* row, std::uint32_t padded) {
  std::uint32_t e = 0;
  while (e < padded && row[e] < std::numeric_limits<float>::infinity()) ++e;
  return e;
}

float largest(const float* row, std::uint32_t padded) {
  return *std::max_element(row, row + padded);
}

float cut(const float* row, std::uint32_t padded, std::uint32_t count) {
  if (count > k_row_lanes) return k_none;
  float lanes[k_row_lanes];
  std::copy_n(row, k_row_lanes, lanes);
  for (std::uint32_t e = k_row_lanes; e < padded; ++e)
    lanes[e % k_row_lanes] = std::max(lanes[e % k_row_lanes], row[e]);
  std::nth_element(lanes, lanes + count - 1, lanes + k_row_lanes, std::greater<>());
  return lanes[count - 1];
}

std::uint32_t collect(const float* row, std::uint32_t padded, float cut, std::uint16_t* ids) {
  const float least = std::max(cut, std::numeric_limits<float>::lowest());
  std::uint32_t count = 0;
  for (std::uint32_t e = 0; e < padded; ++e) {
    if (row[e] >= least) ids[count++] = static_cast<std::uint16_t>(e);
  }
  return count;
}

// One insertion after the other, in ascending id: no later value passes an equal one.
std::uint32_t select(const float* row, std::uint32_t padded, std::uint32_t most,
                     std::uint16_t* ids) {
  const float least = std::max(cut(row, padded, most), std::numeric_limits<float>::lowest());
  std::uint32_t count = 0;
  for (std::uint32_t e = 0; e < padded; ++e) {
    if (row[e] < least || (count == most && row[e] <= row[ids[count - 1]])) continue;
    std::uint32_t at = count < most ? count++ : count - 1;
    for (; at > 0 && row[ids[at - 1]] < row[e]; --at) ids[at] = ids[at - 1];
    ids[at] = static_cast<std::uint16_t>(e);
  }
  return count;
}

void group_pairs(const float* keys, std::uint32_t width, std::uint32_t groups, float* sums) {
  for (std::uint32_t g = 0; g < groups; ++g, keys += width) {
    float first = k_none;
    float second = k_none;
    for (std::uint32_t i = 0; i < width; ++i) {
      second = std::max(second, std::min(first, keys[i]));
      first = std::max(first, keys[i]);
    }
    sums[g] = second == k_none ? first : first + second;
  }
}

void drop_groups(const float* sums, std::uint32_t groups, std::uint32_t kept, std::uint32_t width,
                 float* keys) {
  for (std::uint32_t g = 0; g < groups; ++g) {
    std::uint32_t better = 0;
    for (std::uint32_t h = 0; h < groups; ++h)
      better += sums[h] > sums[g] || (sums[h] == sums[g] && h < g) ? 1U : 0U;
    if (better >= kept) std::fill_n(keys + std::size_t{g} * width, width, k_none);
  }
}

}  // namespace

constinit const row_kernels k_row_kernels_scalar = {
    .find_bad = find_bad,
    .largest = largest,
    .cut = cut,
    .collect = collect,
    .select = select,
    .group_pairs = group_pairs,
    .drop_groups = drop_groups,
    .scores = &k_score_kernels_scalar,
};

}  // namespace moetier::kernels
