#include "actors/cli/bench_routing_plain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "schemas/base/limits.hpp"

namespace moetier::cli {
namespace {

using method = routing_method;

void softmax(const float* logits, std::uint32_t columns, float* p) {
  const float largest = *std::max_element(logits, logits + columns);
  float sum = 0;
  for (std::uint32_t e = 0; e < columns; ++e) sum += p[e] = std::exp(logits[e] - largest);
  for (std::uint32_t e = 0; e < columns; ++e) p[e] /= sum;
}

void score(method m, const float* logits, std::uint32_t columns, float* scores) {
  switch (m) {
    case method::deepseek_v3:
    case method::llama4:
    case method::minimax2:
    case method::sigmoid_renorm:
      for (std::uint32_t e = 0; e < columns; ++e) scores[e] = 1.0F / (1.0F + std::exp(-logits[e]));
      return;
    case method::deepseek_v4:
    case method::sqrt_softplus:
      for (std::uint32_t e = 0; e < columns; ++e)
        scores[e] =
            std::sqrt(std::max(logits[e], 0.0F) + std::log1p(std::exp(-std::fabs(logits[e]))));
      return;
    default: softmax(logits, columns, scores);
  }
}

// Best first, equal keys by id, of `count` keys.
void best(const float* keys, std::uint32_t count, std::uint32_t most, std::int32_t* order) {
  std::iota(order, order + count, 0);
  std::partial_sort(order, order + most, order + count, [&](std::int32_t a, std::int32_t b) {
    return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
  });
}

void drop_groups(const routing_rule& rule, std::uint32_t columns, const float* scored,
                 float* keys) {
  const std::uint32_t width = columns / rule.groups;
  float scores[k_experts_max];
  std::int32_t order[k_experts_max];
  for (std::uint32_t g = 0; g < rule.groups; ++g) {
    float first = -std::numeric_limits<float>::infinity();
    float second = first;
    for (const float* v = scored + g * width; v < scored + (g + 1) * width; ++v) {
      second = std::max(second, std::min(first, *v));
      first = std::max(first, *v);
    }
    scores[g] = rule.method == method::deepseek_v2 || width == 1 ? first : first + second;
  }
  best(scores, rule.groups, rule.groups, order);
  for (std::uint32_t i = rule.groups_kept; i < rule.groups; ++i) {
    const auto g = static_cast<std::uint32_t>(order[i]);
    std::fill_n(keys + g * width, width, -std::numeric_limits<float>::infinity());
  }
}

// Softmax over what is near the best of what is left, position by position.
void mix_sparsely(const kernels::routing_params& params, float* left, const std::int32_t* ids,
                  float* weights) {
  for (std::uint32_t j = 0; j < params.top_k; ++j) {
    const float m = left[ids[j]];
    float sum = 0;
    for (std::uint32_t e = 0; e < params.columns(); ++e) {
      const float distance = (m - left[e]) / std::max(std::fabs(left[e]), m);
      if (!(distance > 2 * params.rule.epsilon)) sum += std::exp(left[e] - m);
    }
    weights[j] = 1.0F / sum;
    left[ids[j]] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace

void route_plain(const kernels::routing_params& params, const layer_routing& layer,
                 const float* logits, std::int32_t* ids, float* weights) {
  const routing_rule& rule = params.rule;
  const std::uint32_t columns = params.columns();
  const std::uint32_t k = params.top_k;
  float scores[k_experts_max];
  float keys[k_experts_max];
  std::int32_t order[k_experts_max];
  score(rule.method, logits, columns, scores);
  for (std::uint32_t e = 0; e < columns; ++e)
    keys[e] = layer.bias.empty() ? scores[e] : scores[e] + layer.bias[e];
  if (rule.method == method::sparse_mixer || rule.method == method::deepseek_v2)
    std::copy_n(logits, columns, keys);
  if (rule.groups > 1) drop_groups(rule, columns, keys, keys);
  best(keys, columns, k, order);
  std::copy_n(order, k, ids);
  if (rule.method == method::sparse_mixer) return mix_sparsely(params, keys, ids, weights);
  float sum = 0;
  for (std::uint32_t j = 0; j < k; ++j) sum += weights[j] = scores[ids[j]];
  switch (rule.method) {
    case method::default_softmax:
    case method::llama4:
    case method::deepseek_v2:
    case method::softmax_bias_raw: sum = 1; break;
    case method::softmax_bias: sum = std::max(sum, rule.epsilon); break;
    case method::softmax_pnorm: {
      float powers = 0;
      for (std::uint32_t j = 0; j < k; ++j) powers += std::pow(weights[j], rule.power);
      sum = std::pow(powers, 1.0F / rule.power);
      break;
    }
    case method::renormalize:
    case method::renormalize_naive: break;
    default: sum = rule.renormalise ? sum + rule.epsilon : 1.0F;
  }
  for (std::uint32_t j = 0; j < k; ++j) weights[j] = weights[j] / sum * rule.scaling;
}

}  // namespace moetier::cli
