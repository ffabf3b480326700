#include "kernels/routing/score_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math/score_math.hpp"
#include "kernels/routing/row_kernels.hpp"

namespace moetier::kernels {
namespace {

float fold(float* lanes) {
  for (std::uint32_t half = k_row_lanes / 2; half > 0; half /= 2) {
    for (std::uint32_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

float exp_sum(const float* row, std::uint32_t padded, float largest) {
  float lanes[k_row_lanes] = {};
  for (std::uint32_t e = 0; e < padded; ++e) lanes[e % k_row_lanes] += house_exp(row[e] - largest);
  return fold(lanes);
}

float near_sum(const float* row, std::uint32_t padded, float largest, float reach) {
  float lanes[k_row_lanes] = {};
  for (std::uint32_t e = 0; e < padded; ++e) {
    // 0/0 and inf/inf compare false: kept, the latter with exp(-inf) = 0.
    const bool apart = (largest - row[e]) / std::max(std::fabs(row[e]), largest) > reach;
    lanes[e % k_row_lanes] += apart ? 0.0F : house_exp(row[e] - largest);
  }
  return fold(lanes);
}

float key(float logit, float score, float bias) {
  constexpr float k_none = -std::numeric_limits<float>::infinity();
  return logit == k_none ? k_none : score + bias;
}

float house_root_softplus(float x) { return std::sqrt(house_softplus(x)); }

void sigmoid(const float* row, const float* bias, std::uint32_t padded, float* scores,
             float* keys) {
  for (std::uint32_t e = 0; e < padded; ++e) {
    scores[e] = house_sigmoid(row[e]);
    keys[e] = key(row[e], scores[e], bias[e]);
  }
}

void root_softplus(const float* row, const float* bias, std::uint32_t padded, float* scores,
                   float* keys) {
  for (std::uint32_t e = 0; e < padded; ++e) {
    scores[e] = house_root_softplus(row[e]);
    keys[e] = key(row[e], scores[e], bias[e]);
  }
}

void softmax(const float* row, const float* bias, std::uint32_t padded, float largest, float sum,
             float* scores, float* keys) {
  for (std::uint32_t e = 0; e < padded; ++e) {
    scores[e] = house_exp(row[e] - largest) / sum;
    keys[e] = key(row[e], scores[e], bias[e]);
  }
}

void exp_each(float* values, std::uint32_t count, float largest) {
  for (std::uint32_t i = 0; i < count; ++i) values[i] = house_exp(values[i] - largest);
}

void sigmoid_each(float* values, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) values[i] = house_sigmoid(values[i]);
}

void root_softplus_each(float* values, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) values[i] = house_root_softplus(values[i]);
}

}  // namespace

constinit const score_kernels k_score_kernels_scalar = {
    .exp_sum = exp_sum,
    .near_sum = near_sum,
    .sigmoid = sigmoid,
    .root_softplus = root_softplus,
    .softmax = softmax,
    .exp_each = exp_each,
    .sigmoid_each = sigmoid_each,
    .root_softplus_each = root_softplus_each,
};

}  // namespace moetier::kernels
