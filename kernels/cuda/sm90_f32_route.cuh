#pragma once
// Router logits to experts and weights, a warp a row, by the operations of kernels/routing in their
// order: column e belongs to lane e % 32, as in the host's lanes, so sums over columns fold alike;
// sums over the chosen run from the best down. Compiled without contraction, so that ids and
// weights are the host's in bits. Bound by latency: one row is a chain of votes and shuffles, and
// the code is read once, so what is long is not unrolled and rows lie in shared memory.

#include <cstdint>
#include <limits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/route_launch.hpp"
#include "kernels/cuda/sm90_ptx.cuh"
#include "kernels/math/score_math.hpp"

namespace moetier::kernels::cuda {

// Registers for it: left alone, ptxas takes fewer and spills.
inline constexpr std::uint32_t k_route_blocks_resident = 8;
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
#pragma unroll 1
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

// One row. Of N * 32 columns those beyond the row's are -inf.
template <std::uint32_t N>
struct route_shared {
  float row[N * 32];      // logits; scores where the plan is wide and has a bias
  float keys[N * 32];     // where the plan is wide
  float sums[N * 32];     // of groups
  std::uint32_t kept[N];  // a bit a group
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

// Finds the best groups: shared.kept.
template <std::uint32_t N>
__device__ inline void keep_groups(const route_args& args, const route_plan& plan,
                                   route_shared<N>& shared) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t groups = args.rule.groups;
  const std::uint32_t width = args.columns / groups;
  const float* const scored = plan.wide ? shared.keys : shared.row;

  // A group's score, by group_lanes lanes.
#pragma unroll 1
  for (std::uint32_t g0 = 0; g0 < groups; g0 += 32 / plan.group_lanes) {
    const std::uint32_t g = g0 + lane / plan.group_lanes;
    best_pair best;
    if (g < groups) {
#pragma unroll 4
      for (std::uint32_t i = lane % plan.group_lanes; i < width; i += plan.group_lanes)
        best.add(scored[g * width + i]);
    }
#pragma unroll 1
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
#pragma unroll 1
  for (std::uint32_t g0 = 0; g0 < groups; g0 += 32) {
    const std::uint32_t g = g0 + lane;
    const float sum = g < groups ? shared.sums[g] : k_route_none;
    std::uint32_t better = 0;
#pragma unroll 8
    for (std::uint32_t h = 0; h < groups; ++h) {
      const float other = shared.sums[h];
      better += other > sum || (other == sum && h < g) ? 1u : 0u;
    }
    const std::uint32_t kept = __ballot_sync(~0u, g < groups && better < args.rule.groups_kept);
    if (lane == 0) shared.kept[g0 / 32] = kept;
  }
  __syncwarp();
}

// The k best keys of the groups kept, one after the other; lane j gets the j-th one's column.
// Returns how many there were to choose.
template <std::uint32_t N>
__device__ inline std::uint32_t choose_best(const route_args& args, const route_plan& plan,
                                            const route_shared<N>& shared, std::uint32_t& chosen) {
  const std::uint32_t lane = threadIdx.x % 32;
  const float* const keys = args.bias != nullptr ? shared.keys : shared.row;
  std::uint32_t orders[N];  // 0 where dropped, or taken
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i) orders[i] = route_order(keys[i * 32 + lane]);
  if (plan.groups != group_kind::none) {
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) {
      const std::uint32_t e = min(i * 32 + lane, args.columns - 1);
      const std::uint32_t g = e * plan.group_factor >> k_route_factor_bits;
      orders[i] = (shared.kept[g / 32] >> g % 32 & 1u) != 0 ? orders[i] : 0;
    }
  }
#pragma unroll 1
  for (std::uint32_t j = 0; j < args.top_k; ++j) {
    // The best of this lane, by halves: of equals the left one, whose column is lower.
    std::uint32_t best[N];
    std::uint32_t at[N];
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) {
      best[i] = orders[i];
      at[i] = i;
    }
#pragma unroll
    for (std::uint32_t half = 1; half < N; half *= 2) {
#pragma unroll
      for (std::uint32_t i = 0; i < N; i += 2 * half) {
        at[i] = best[i + half] > best[i] ? at[i + half] : at[i];
        best[i] = max(best[i], best[i + half]);
      }
    }
    const std::uint32_t column = at[0] * 32 + lane;
    const std::uint32_t largest = __reduce_max_sync(~0u, best[0]);
    if (largest <= k_route_order_none) return j;
    const std::uint32_t first = __reduce_min_sync(~0u, best[0] == largest ? column : ~0u);
#pragma unroll
    for (std::uint32_t i = 0; i < N; ++i) orders[i] = first == i * 32 + lane ? 0 : orders[i];
    if (lane == j) chosen = first;
  }
  return args.top_k;
}

// Of lanes 0..k-1 from the first on.
__device__ inline float sum_chosen(float value, std::uint32_t k) {
  float sum = 0;
#pragma unroll 4
  for (std::uint32_t j = 0; j < k; ++j) sum += __shfl_sync(~0u, value, static_cast<int>(j));
  return sum;
}

__device__ inline float divided(float value, float by, float scaling) {
  return by == 0 ? 0.0F : value / by * scaling;
}

// Softmax over what is near the best left, for each position.
__device__ inline float near_softmax(const route_args& args, std::uint32_t padded, float* logits,
                                     float value, std::uint32_t chosen) {
  const std::uint32_t lane = threadIdx.x % 32;
  const float reach = 2 * args.rule.epsilon;
  float weight = 0;
#pragma unroll 1
  for (std::uint32_t j = 0; j < args.top_k; ++j) {
    const float largest = __shfl_sync(~0u, value, static_cast<int>(j));
    float sum = 0;
#pragma unroll 1
    for (std::uint32_t e = lane; e < padded; e += 32) {
      const float logit = logits[e];
      const float size = fabsf(logit);
      const bool apart = (largest - logit) / (size < largest ? largest : size) > reach;
      sum += apart ? 0.0F : house_exp(logit - largest);
    }
    const float all = fold_lanes(sum);
    __syncwarp();
    if (lane == j) {
      weight = 1.0F / all;
      logits[chosen] = k_route_none;
    }
    __syncwarp();
  }
  return weight;
}

// The weight of lane j's expert. `value` is its score.
__device__ inline float weigh_chosen(const route_args& args, const route_plan& plan,
                                     std::uint32_t padded, float* row, float value,
                                     std::uint32_t chosen) {
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
    case weight_kind::near_softmax: return near_softmax(args, padded, row, value, chosen);
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
                                      std::uint32_t t, route_shared<N>& shared,
                                      std::uint32_t& chosen, float& value) {
  constexpr std::uint32_t k_padded = N * 32;
  const std::uint32_t lane = threadIdx.x % 32;

  // Read the row and its bias: all loads in flight.
  const bool biased = args.bias != nullptr;
  bool bad = false;
  float largest = k_route_none;
#pragma unroll
  for (std::uint32_t i = 0; i < N; ++i) {
    const std::uint32_t e = i * 32 + lane;
    const float logit = e < args.columns ? route_logit(args, t, e) : k_route_none;
    bad |= !(logit < std::numeric_limits<float>::infinity());
    largest = largest < logit ? logit : largest;
    shared.row[e] = logit;
    if (plan.wide) shared.keys[e] = biased && e < args.columns ? args.bias[e] : 0.0F;
  }
  if (__any_sync(~0u, bad)) return false;
  __syncwarp();

  if (args.table != nullptr) {
    const std::int32_t token = args.token_ids[t];
    if (token < 0 || static_cast<std::uint32_t>(token) >= args.table_rows) return false;
    chosen = lane < args.top_k ? args.table[std::size_t(token) * args.top_k + lane] : 0;
    value = route_score(plan.score, shared.row[chosen], 0.0F, 1.0F);
    return true;
  }

  float sum = 0;
  if (plan.score == score_kind::softmax) {
#pragma unroll 1
    for (std::uint32_t half = 16; half > 0; half /= 2) {
      const float other = __shfl_xor_sync(~0u, largest, half);
      largest = largest < other ? other : largest;
    }
    if (largest == k_route_none) return false;
#pragma unroll 2
    for (std::uint32_t e = lane; e < k_padded; e += 32) sum += house_exp(shared.row[e] - largest);
    sum = fold_lanes(sum);
  }
  if (plan.wide) {
    // A lane reads and writes its own columns alone.
#pragma unroll 4
    for (std::uint32_t e = lane; e < k_padded; e += 32) {
      const float logit = shared.row[e];
      const float score = route_score(plan.score, logit, largest, sum);
      shared.keys[e] = logit == k_route_none ? k_route_none : score + shared.keys[e];
      if (biased) shared.row[e] = score;
    }
    __syncwarp();
  }
  if (plan.groups != group_kind::none) keep_groups(args, plan, shared);
  // Without a bias scores grow with logits: comparing logits keeps apart what rounding would not.
  chosen = 0;
  if (choose_best(args, plan, shared, chosen) < args.top_k) return false;
  // Without a bias the key of a chosen column is its score: scores are never -0.
  if (plan.wide) {
    value = biased ? shared.row[chosen] : shared.keys[chosen];
  } else {
    value = route_score(plan.score, shared.row[chosen], largest, sum);
  }
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
    std::uint32_t chosen = 0;
    float value = 0;
    __syncwarp();
    const bool routed = choose_experts(args, plan, t, shared[warp], chosen, value);
    const float weight =
        routed ? weigh_chosen(args, plan, N * 32, shared[warp].row, value, chosen) : 0.0F;
    if (!routed && lane == 0) ptx::report(args.status, device_failure::bad_router_row, t);
    if (lane >= args.top_k) continue;
    const std::size_t at = std::size_t{t} * args.top_k + lane;
    args.ids[at] = routed ? static_cast<std::int32_t>(chosen) : -1;
    args.weights[at] = weight;
  }
}

}  // namespace moetier::kernels::cuda
