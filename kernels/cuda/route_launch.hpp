#pragma once
// Routing on the device: which of kernels/routing's methods it takes, what of their settings the
// kernel reads, and its launch configuration, all by pure functions. Ids and weights are those of
// route_flagging() in bits. Nothing here calls CUDA.
//
// Thread: any (values, pure functions).

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.hpp"
#include "kernels/routing/method_form.hpp"
#include "schemas/base/dtype.hpp"
#include "schemas/model/routing_rule.hpp"

namespace moetier::kernels::cuda {

inline constexpr std::uint32_t k_route_columns_max = 1024;  // E and identity experts
inline constexpr std::uint32_t k_route_top_k_max = 32;      // a lane each
inline constexpr std::uint32_t k_route_warps = 2;           // of a block, a row each
inline constexpr std::uint32_t k_route_blocks_per_multiprocessor = 16;
inline constexpr std::uint32_t k_route_factor_bits = 20;

// Pointers are device memory.
struct route_args {
  routing_rule rule{};
  std::uint32_t columns = 0;          // of logits: experts, then identity experts
  std::uint32_t top_k = 0;            // k
  const std::byte* logits = nullptr;  // [tokens_cap][columns]
  std::size_t pitch_bytes = 0;
  dtype type = dtype::f32;                     // f32, bf16, f16
  const std::uint32_t* tokens_live = nullptr;  // rows at or beyond it are neither read nor written
  std::uint32_t tokens_cap = 0;
  const float* bias = nullptr;           // [columns]; nullptr = the layer has none
  const float* expert_scale = nullptr;   // [experts]; nullptr = 1
  const std::uint16_t* table = nullptr;  // [table_rows][k]: a layer that chooses by token id
  std::uint32_t table_rows = 0;
  const std::int32_t* token_ids = nullptr;  // [tokens_cap]; with a table
  std::int32_t* ids = nullptr;              // [tokens_cap][k]
  float* weights = nullptr;                 // [tokens_cap][k]
  // A row with NaN or +inf, with fewer than k experts to choose from, or with a token id outside
  // the table: its ids are -1, its weights 0, and *status tells of one such row.
  std::uint32_t* status = nullptr;
};

// Requires: check_routing() and check_layer() hold of the rule and of what the pointers stand for.
// Methods that choose from a table alone have no logits to route.
inline bool can_route(const route_args& args) noexcept {
  const bool known = static_cast<std::uint8_t>(args.rule.method) < k_routing_methods;
  if (!known) return false;
  const weight_kind weight = form_of(args.rule.method).weight;
  return weight != weight_kind::table && weight != weight_kind::none && args.columns >= 1 &&
         args.columns <= k_route_columns_max && args.top_k >= 1 &&
         args.top_k <= std::min(args.columns, k_route_top_k_max) && args.rule.groups >= 1 &&
         args.columns % args.rule.groups == 0 &&
         (args.type == dtype::f32 || args.type == dtype::bf16 || args.type == dtype::f16) &&
         args.logits != nullptr && args.tokens_live != nullptr && args.ids != nullptr &&
         args.weights != nullptr && args.status != nullptr &&
         (args.table == nullptr || (args.token_ids != nullptr && args.table_rows >= 1));
}

struct route_plan {
  std::uint32_t grid = 1;
  std::uint32_t lane_columns = 4;  // columns of a lane: 4, 8, 16, 32
  std::uint32_t group_lanes = 1;   // lanes that share a group
  // e / (columns of a group) is e * group_factor >> k_route_factor_bits.
  std::uint32_t group_factor = 0;
  score_kind score = score_kind::none;
  weight_kind weight = weight_kind::none;
  group_kind groups = group_kind::none;  // none where all groups are kept
  bool wide = false;                     // scores of all columns are needed to choose
  bool share = false;                    // weights are divided by their sum

  bool operator==(const route_plan&) const = default;
};

// Requires: can_route().
inline route_plan plan_route(const route_args& args, const device_size& device) noexcept {
  const method_form& form = form_of(args.rule.method);
  route_plan plan;
  plan.lane_columns = std::max(std::bit_ceil((args.columns + 31) / 32), 4u);
  plan.group_lanes = 32 / std::min(std::bit_ceil(args.rule.groups), 32u);
  const std::uint32_t width = args.columns / args.rule.groups;
  plan.group_factor = ((1u << k_route_factor_bits) + width - 1) / width;
  plan.score = form.score;
  plan.weight = form.weight;
  const bool drops = form.groups != group_kind::none && args.rule.groups_kept < args.rule.groups;
  plan.groups = drops ? form.groups : group_kind::none;
  plan.wide =
      form.score != score_kind::none && (args.bias != nullptr || plan.groups == group_kind::pairs);
  plan.share = args.rule.renormalise || !form.may_keep;
  const std::uint64_t blocks = (std::uint64_t{args.tokens_cap} + k_route_warps - 1) / k_route_warps;
  const std::uint64_t most =
      std::uint64_t{device.multiprocessors} * k_route_blocks_per_multiprocessor;
  plan.grid = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, most));
  return plan;
}

}  // namespace moetier::kernels::cuda
