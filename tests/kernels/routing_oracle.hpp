#pragma once
// Routing once more, from the formulas alone: doubles, full stable sorts, no code of the product.
// Slow and plain on purpose. `ambiguous` says that two keys of the row lie closer than f32 can tell
// without being equal, so that another order would be right as well.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "schemas/model/routing_rule.hpp"
#include "schemas/model/routing_tables.hpp"

namespace moetier::oracle {

struct answer {
  std::vector<int> ids;
  std::vector<double> weights;
  bool starved = false;
  bool ambiguous = false;
};

inline bool gone(double x) { return std::isinf(x) && x < 0; }

inline double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

inline double root_softplus(double x) {
  return std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
}

inline std::vector<double> softmax(const std::vector<double>& x) {
  const double most = *std::max_element(x.begin(), x.end());
  std::vector<double> p;
  for (const double v : x) p.push_back(gone(v) ? 0.0 : std::exp(v - most));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= sum;
  return p;
}

// Indexes by falling key, equal ones in order; too close to call is noted.
inline std::vector<int> sorted(const std::vector<double>& keys, std::size_t looked_at,
                               bool& ambiguous) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return keys[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
  for (std::size_t i = 0; i + 1 < order.size() && i < looked_at; ++i) {
    const double gap = key(order[i]) - key(order[i + 1]);
    if (gap > 0 && gap < 2e-6 * std::max(1.0, std::fabs(key(order[i])))) ambiguous = true;
  }
  return order;
}

inline std::vector<double> scores_of(routing_method method, const std::vector<double>& x) {
  using m = routing_method;
  std::vector<double> s;
  switch (method) {
    case m::deepseek_v3:
    case m::llama4:
    case m::minimax2:
    case m::sigmoid_renorm:
      for (const double v : x) s.push_back(gone(v) ? 0 : sigmoid(v));
      return s;
    case m::deepseek_v4:
    case m::sqrt_softplus:
      for (const double v : x) s.push_back(gone(v) ? 0 : root_softplus(v));
      return s;
    default: return softmax(x);
  }
}

// Sum of the two largest, or the largest, of what is not excluded.
inline double group_score(std::vector<double> keys, bool pairs) {
  std::sort(keys.rbegin(), keys.rend());
  if (!pairs || keys.size() < 2 || gone(keys[1])) return keys[0];
  return keys[0] + keys[1];
}

inline std::vector<double> weights_of(const routing_rule& rule, const layer_routing& layer,
                                      const std::vector<double>& x, const std::vector<double>& s,
                                      const std::vector<int>& ids) {
  using m = routing_method;
  const auto at = [](const std::vector<double>& v, int i) {
    return v[static_cast<std::size_t>(i)];
  };
  std::vector<double> w;
  double sum = 0;
  if (rule.method == m::sparse_mixer) {
    std::vector<double> left = x;
    for (const int id : ids) {
      const double most = at(left, id);
      sum = 0;
      for (const double v : left) {
        if (gone(v)) continue;
        const double scale = std::max(std::fabs(v), most);
        const double distance = scale == 0 ? 0 : (most - v) / scale;
        if (!(distance > 2.0 * double{rule.epsilon})) sum += std::exp(v - most);
      }
      w.push_back(1 / sum);
      left[static_cast<std::size_t>(id)] = -std::numeric_limits<double>::infinity();
    }
    return w;
  }
  for (const int id : ids) sum += at(s, id);
  double powers = 0;
  for (const int id : ids) powers += std::pow(at(s, id), double{rule.power});
  for (const int id : ids) {
    const double v = at(s, id);
    switch (rule.method) {
      case m::default_softmax:
      case m::llama4: w.push_back(v); break;
      case m::renormalize:
      case m::renormalize_naive: {
        const bool scaled = !layer.expert_scale.empty();
        w.push_back(v / sum *
                    (scaled ? double{layer.expert_scale[static_cast<std::size_t>(id)]} : 1.0));
        break;
      }
      case m::deepseek_v2:
      case m::softmax_bias_raw: w.push_back(v * double{rule.scaling}); break;
      case m::softmax_bias: w.push_back(v / std::max(sum, double{rule.epsilon})); break;
      case m::softmax_pnorm: w.push_back(v / std::pow(powers, 1.0 / double{rule.power})); break;
      default: {
        const bool optional = rule.method == m::deepseek_v3 || rule.method == m::sigmoid_renorm ||
                              rule.method == m::softmax_group;
        const double by = rule.renormalise || !optional ? sum + double{rule.epsilon} : 1.0;
        w.push_back(v / by * double{rule.scaling});
      }
    }
  }
  return w;
}

// One row of a method that chooses by score.
inline answer route(const routing_rule& rule, std::size_t k, const layer_routing& layer,
                    const float* logits, std::size_t columns) {
  answer a;
  const std::vector<double> x(logits, logits + columns);
  if (std::all_of(x.begin(), x.end(), gone)) {
    a.starved = true;
    return a;
  }
  const std::vector<double> s = scores_of(rule.method, x);
  std::vector<double> keys = x;
  std::vector<double> grouped = x;
  for (std::size_t e = 0; e < columns; ++e) {
    if (gone(x[e])) continue;
    const double biased = layer.bias.empty() ? s[e] : s[e] + double{layer.bias[e]};
    if (!layer.bias.empty()) keys[e] = biased;
    if (rule.method != routing_method::deepseek_v2) grouped[e] = biased;
  }
  if (rule.groups > 1) {
    const std::size_t width = columns / rule.groups;
    std::vector<double> totals;
    for (std::size_t g = 0; g < rule.groups; ++g) {
      const auto from = grouped.begin() + static_cast<std::ptrdiff_t>(g * width);
      totals.push_back(group_score({from, from + static_cast<std::ptrdiff_t>(width)},
                                   rule.method != routing_method::deepseek_v2));
    }
    const std::vector<int> order = sorted(totals, rule.groups, a.ambiguous);
    for (std::size_t i = rule.groups_kept; i < rule.groups; ++i) {
      const auto from = static_cast<std::size_t>(order[i]) * width;
      for (std::size_t e = from; e < from + width; ++e)
        keys[e] = -std::numeric_limits<double>::infinity();
    }
  }
  // Logits are f32 values themselves: their order is exact.
  bool close = false;
  a.ids = sorted(keys, k, close);
  if (!layer.bias.empty()) a.ambiguous |= close;
  a.ids.resize(k);
  a.starved = gone(keys[static_cast<std::size_t>(a.ids.back())]);
  if (!a.starved) a.weights = weights_of(rule, layer, x, s, a.ids);
  return a;
}

}  // namespace moetier::oracle
