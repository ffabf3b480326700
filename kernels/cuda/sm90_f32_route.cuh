#pragma once
// Router logits to experts and weights, a warp a row, by the operations of kernels/routing in their
// order: column e belongs to lane e % 32, as in the host's lanes, so sums over columns fold alike;
// sums over the chosen run from the best down. Compiled without contraction, so that ids and
// weights are the host's in bits. Bound by latency: one row is a chain of votes and shuffles.

#include <cstdint>
#include <limits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/route_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"
#include "kernels/math/score_math.hpp"

namespace moetier::kernels::cuda {

// Registers for it: with fewer, some of a row's columns would leave them.
inline constexpr std::uint32_t k_route_blocks_resident = 3;
inline constexpr float k_route_none = -std::numeric_limits<float>::infinity();

__device__ inline float route_logit(const route_args& args, std::uint32_t t, std::uint32_t e) {
  const std::byte* const row = args.logits + t * args.pitch_bytes;
  if (args.type == dtype::f32) return reinterpret_cast<const float*>(row)[e];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(row)[e];
  return args.type == dtype::bf16 ? f32_from_bf16(bits) : __half2float(__ushort_as_half(bits));
}

// Order of floats as unsigned numbers, -0 as +0; none below all.
__device__ inline std::uint32_t route_order(float key) {
  const std::uint32_t bits = __float_as_uint(key + 0.0F);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
inline constexpr std::uint32_t k_route_order_none = 0x007fffffu;  // of -inf

// Sums that lie one a lane, folded as the host folds its lanes: the same in every lane.
__device__ inline float fold_lanes(float sum) {
  for (std::uint32_t half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  return sum;
}

__device__ inline float route_score(score_kind score, float logit, float largest, float sum) {
  switch (score) {
    case score_kind::sigmoid: return house_sigmoid(logit);
    case score_kind::root_softplus: return sqrtf(house_softplus(logit));
    case score_kind::softmax: return house_exp(logit - largest) / sum;
    default: return logit;
  }
}

// Of one row, the columns of this lane: 32 * i + lane.
template <std::uint32_t N>
struct route_row {
  float logits[N];  // -inf beyond the columns
  float scores[N];  // where the plan is wide
  float keys[N];
};

// What a warp needs beside registers, where groups are dropped.
template <std::uint32_t N>
struct route_shared {
  float scored[N * 32];
  float sums[N * 32];  // of groups
};

// The two best keys of a set.
struct best_pair {
  float first = k_route_none;
  float second = k_route_none;
  __device__ void add(float key) {
    const float lower = key < first ? key : first;
    second = second < lower ? lower : second;
    first = first < key ? key : first;
  }
};

// Writes -inf over the keys outside the best groups.
template <std::uint32_t N>
__device__ inline void drop_groups(const route_args& args, const route_plan& plan,
                                   route_row<N>& row, route_shared<N>& shared) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t groups = args.rule.groups;
  const std::uint32_t width = args.columns / groups;
  const bool by_score = plan.wide;
  const bool from_keys = args.bias != nullptr;
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i)
    shared.scored[i * 32 + lane] = by_score ? row.keys[i] : row.logits[i];
  __syncwarp();

  // A group's score, by group_lanes lanes.
  for (std::uint32_t g0 = 0; g0 < groups; g0 += 32 / plan.group_lanes) {
    const std::uint32_t g = g0 + lane / plan.group_lanes;
    best_pair best;
    if (g < groups) {
      for (std::uint32_t i = lane % plan.group_lanes; i < width; i += plan.group_lanes)
        best.add(shared.scored[g * width + i]);
    }
    for (std::uint32_t d = 1; d < plan.group_lanes; d *= 2) {
      const float first = __shfl_xor_sync(~0u, best.first, d);
      const float second = __shfl_xor_sync(~0u, best.second, d);
      best.add(first);
      best.add(second);
    }
    if (g < groups && lane % plan.group_lanes == 0) {
      const bool pair = plan.groups == group_kind::pairs && best.second != k_route_none;
      shared.sums[g] = pair ? best.first + best.second : best.first;
    }
  }
  __syncwarp();

  // Which are kept: those with fewer better ones than that.
  std::uint32_t kept = 0;  // of groups 32 * i + lane
  for (std::uint32_t g = lane; g < groups; g += 32) {
    std::uint32_t better = 0;
    for (std::uint32_t h = 0; h < groups; ++h) {
      const bool equal_before = shared.sums[h] == shared.sums[g] && h < g;
      better += shared.sums[h] > shared.sums[g] || equal_before ? 1u : 0u;
    }
    kept |= (better < args.rule.groups_kept ? 1u : 0u) << g / 32;
  }
  __syncwarp();
  for (std::uint32_t g = lane; g < groups; g += 32)
    shared.sums[g] = (kept >> g / 32 & 1u) != 0 ? 1.0F : 0.0F;
  __syncwarp();
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i) {
    const std::uint32_t e = i * 32 + lane;
    const bool dropped = e < args.columns && shared.sums[e / width] == 0;
    if (dropped) (from_keys ? row.keys[i] : row.logits[i]) = k_route_none;
  }
  __syncwarp();
}

// The k best keys, one after the other; lane j gets the j-th one's column. Returns how many there
// were to choose.
template <std::uint32_t N>
__device__ inline std::uint32_t choose_best(const float (&keys)[N], std::uint32_t k,
                                            std::uint32_t& chosen) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t orders[N];
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i) orders[i] = route_order(keys[i]);
  std::uint32_t taken = 0;  // bit i
  for (std::uint32_t j = 0; j < k; ++j) {
    std::uint32_t best = 0;
    std::uint32_t at = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) {
      const std::uint32_t order = (taken >> i & 1u) != 0 ? 0 : orders[i];
      at = order > best ? i : at;
      best = order > best ? order : best;
    }
    const std::uint32_t largest = __reduce_max_sync(~0u, best);
    if (largest <= k_route_order_none) return j;
    const std::uint32_t column = at * 32 + lane;
    const std::uint32_t first = __reduce_min_sync(~0u, best == largest ? column : ~0u);
    if (first == column) taken |= 1u << at;
    if (lane == j) chosen = first;
  }
  return k;
}

// The value of column `column` in every lane that asks for it.
template <std::uint32_t N>
__device__ inline float of_column(const float (&values)[N], std::uint32_t column) {
  float value = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i) {
    const float there = __shfl_sync(~0u, values[i], static_cast<int>(column % 32));
    value = column / 32 == i ? there : value;
  }
  return value;
}

// Of lanes 0..k-1 from the first on.
__device__ inline float sum_chosen(float value, std::uint32_t k) {
  float sum = 0;
  for (std::uint32_t j = 0; j < k; ++j) sum += __shfl_sync(~0u, value, static_cast<int>(j));
  return sum;
}

__device__ inline float divided(float value, float by, float scaling) {
  return by == 0 ? 0.0F : value / by * scaling;
}

// Softmax over what is near the best left, for each position.
template <std::uint32_t N>
__device__ inline float near_softmax(const route_args& args, float (&logits)[N], float value,
                                     std::uint32_t chosen) {
  const std::uint32_t lane = threadIdx.x % 32;
  const float reach = 2 * args.rule.epsilon;
  float weight = 0;
  for (std::uint32_t j = 0; j < args.top_k; ++j) {
    const float largest = __shfl_sync(~0u, value, static_cast<int>(j));
    const std::uint32_t column = __shfl_sync(~0u, chosen, static_cast<int>(j));
    float sum = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) {
      const float size = fabsf(logits[i]);
      const bool apart = (largest - logits[i]) / (size < largest ? largest : size) > reach;
      sum += apart ? 0.0F : house_exp(logits[i] - largest);
      if (column == i * 32 + lane) logits[i] = k_route_none;
    }
    const float all = fold_lanes(sum);
    if (lane == j) weight = 1.0F / all;
  }
  return weight;
}

// The weight of lane j's expert. `value` is its score.
template <std::uint32_t N>
__device__ inline float weigh_chosen(const route_args& args, const route_plan& plan,
                                     route_row<N>& row, float value, std::uint32_t chosen) {
  const std::uint32_t k = args.top_k;
  const float scaling = args.rule.scaling;
  switch (plan.weight) {
    case weight_kind::score: return divided(value, 1.0F, scaling);
    case weight_kind::share:
      return divided(value, plan.share ? sum_chosen(value, k) + args.rule.epsilon : 1.0F, scaling);
    case weight_kind::floored_share: {
      const float sum = sum_chosen(value, k);
      return divided(value, sum < args.rule.epsilon ? args.rule.epsilon : sum, scaling);
    }
    case weight_kind::near_softmax: return near_softmax(args, row.logits, value, chosen);
    case weight_kind::power_norm:
      if (args.rule.power != 1.0F) {
        const float over = value - __shfl_sync(~0u, value, 0);
        const float powers = sum_chosen(house_exp(over * args.rule.power - 0.0F), k);
        return house_exp(over - house_log(powers) / args.rule.power);
      }
      [[fallthrough]];
    case weight_kind::chosen_softmax: {
      const float part = house_exp(value - __shfl_sync(~0u, value, 0));
      const float weight = part / sum_chosen(part, k);
      return args.expert_scale != nullptr && threadIdx.x % 32 < k
                 ? weight * args.expert_scale[chosen]
                 : weight;
    }
    default: return 0.0F;
  }
}

// Score, drop groups, choose: lane j's column and its score; false where the row cannot be routed.
template <std::uint32_t N>
__device__ inline bool choose_experts(const route_args& args, const route_plan& plan,
                                      std::uint32_t t, route_row<N>& row, route_shared<N>& shared,
                                      std::uint32_t& chosen, float& value) {
  const std::uint32_t lane = threadIdx.x % 32;
  bool bad = false;
  float largest = k_route_none;
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i) {
    const std::uint32_t e = i * 32 + lane;
    row.logits[i] = e < args.columns ? route_logit(args, t, e) : k_route_none;
    bad |= !(row.logits[i] < std::numeric_limits<float>::infinity());
    largest = largest < row.logits[i] ? row.logits[i] : largest;
  }
  if (__any_sync(~0u, bad)) return false;

  if (args.table != nullptr) {
    const std::int32_t token = args.token_ids[t];
    if (token < 0 || static_cast<std::uint32_t>(token) >= args.table_rows) return false;
    chosen = lane < args.top_k ? args.table[std::size_t(token) * args.top_k + lane] : 0;
    value = route_score(plan.score, of_column(row.logits, chosen), 0.0F, 1.0F);
    return true;
  }

  float sum = 0;
  if (plan.score == score_kind::softmax) {
    for (std::uint32_t half = 16; half > 0; half /= 2) {
      const float other = __shfl_xor_sync(~0u, largest, half);
      largest = largest < other ? other : largest;
    }
    if (largest == k_route_none) return false;
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) sum += house_exp(row.logits[i] - largest);
    sum = fold_lanes(sum);
  }
  if (plan.wide) {
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) {
      const std::uint32_t e = i * 32 + lane;
      const float bias = args.bias != nullptr && e < args.columns ? args.bias[e] : 0.0F;
      row.scores[i] = route_score(plan.score, row.logits[i], largest, sum);
      row.keys[i] = row.logits[i] == k_route_none ? k_route_none : row.scores[i] + bias;
    }
  }
  if (plan.groups != group_kind::none) drop_groups(args, plan, row, shared);
  // Without a bias scores grow with logits: comparing logits keeps apart what rounding would not.
  const bool by_key = plan.wide && args.bias != nullptr;
  chosen = 0;
  const std::uint32_t count = by_key ? choose_best(row.keys, args.top_k, chosen)
                                     : choose_best(row.logits, args.top_k, chosen);
  if (count < args.top_k) return false;
  value = plan.wide ? of_column(row.scores, chosen)
                    : route_score(plan.score, of_column(row.logits, chosen), largest, sum);
  return true;
}

template <std::uint32_t N>
__global__ void __launch_bounds__(k_route_warps * 32, k_route_blocks_resident)
    route_kernel(const route_args args, const route_plan plan) {
  __shared__ route_shared<N> shared[k_route_warps];
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t warp = threadIdx.x / 32;
  ptx::wait_for_previous_grid();
  ptx::let_next_grid_start();
  const std::uint32_t live = min(*args.tokens_live, args.tokens_cap);
  for (std::uint32_t t = blockIdx.x * k_route_warps + warp; t < live;
       t += gridDim.x * k_route_warps) {
    route_row<N> row;
    std::uint32_t chosen = 0;
    float value = 0;
    const bool routed = choose_experts(args, plan, t, row, shared[warp], chosen, value);
    const float weight = routed ? weigh_chosen(args, plan, row, value, chosen) : 0.0F;
    if (!routed && lane == 0) ptx::report(args.status, device_failure::bad_router_row, t);
    if (lane >= args.top_k) continue;
    const std::size_t at = std::size_t{t} * args.top_k + lane;
    args.ids[at] = routed ? static_cast<std::int32_t>(chosen) : -1;
    args.weights[at] = weight;
  }
}

}  // namespace moetier::kernels::cuda
