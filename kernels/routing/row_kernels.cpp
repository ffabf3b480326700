#include "kernels/routing/row_kernels.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "kernels/math/house_math.hpp"

namespace moetier::kernels {
namespace {

std::uint32_t find_bad(const float* row, std::uint32_t padded) {
  std::uint32_t e = 0;
  while (e < padded && row[e] < std::numeric_limits<float>::infinity()) ++e;
  return e;
}

float cut(const float* row, std::uint32_t padded, std::uint32_t count) {
  if (count > k_row_lanes) return -std::numeric_limits<float>::infinity();
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

float exp_sum(const float* row, std::uint32_t padded, float largest) {
  float lanes[k_row_lanes] = {};
  for (std::uint32_t e = 0; e < padded; ++e) lanes[e % k_row_lanes] += house_exp(row[e] - largest);
  for (std::uint32_t half = k_row_lanes / 2; half > 0; half /= 2) {
    for (std::uint32_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

void exp_each(float* values, std::uint32_t count, float largest) {
  for (std::uint32_t i = 0; i < count; ++i) values[i] = house_exp(values[i] - largest);
}

}  // namespace

constinit const row_kernels k_row_kernels_scalar = {
    .find_bad = find_bad,
    .cut = cut,
    .collect = collect,
    .exp_sum = exp_sum,
    .exp_each = exp_each,
};

}  // namespace moetier::kernels
