#include "kernels/routing/route.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "kernels/backend.hpp"
#include "kernels/routing/route_rows.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::kernels {
namespace {

static_assert(k_experts_max % k_row_lanes == 0);

constexpr float k_minus_infinity = -std::numeric_limits<float>::infinity();

constexpr std::uint32_t padded_width(std::uint32_t experts) noexcept {
  return (experts + k_row_lanes - 1) / k_row_lanes * k_row_lanes;
}

void widen(const std::byte* row, dtype type, std::uint32_t experts, float* out) noexcept {
  std::uint16_t bits[k_experts_max];
  switch (type) {
    case dtype::f32: std::memcpy(out, row, experts * sizeof(float)); return;
    case dtype::bf16:
      std::memcpy(bits, row, experts * sizeof(std::uint16_t));
      for (std::uint32_t e = 0; e < experts; ++e) out[e] = f32_from_bf16(bits[e]);
      return;
    default:
      std::memcpy(bits, row, experts * sizeof(std::uint16_t));
      for (std::uint32_t e = 0; e < experts; ++e) out[e] = f32_from_f16(bits[e]);
  }
}

// Larger logit first, then lower id, as one number: the order-preserving bits of the logit (-0 made
// +0) above the inverted id. Keys of a row are all different.
using route_key = std::uint64_t;

constexpr route_key key_of(float logit, std::uint32_t id) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);
  const std::uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return route_key{ordered} << 32 | ~id;
}

constexpr std::uint32_t id_of(route_key key) noexcept { return ~static_cast<std::uint32_t>(key); }

// Few candidates are ranked by comparing all with all: no branch depends on data.
constexpr std::uint32_t k_ranked_max = 16;

// The `most` best selectable experts of a row, best first; fewer if fewer are selectable.
// `keys` gets them; it has room for the whole row.
std::uint32_t choose(const row_kernels& kernels, const float* row, std::uint32_t padded,
                     std::uint32_t most, route_key* keys) noexcept {
  std::uint16_t ids[k_experts_max];
  const std::uint32_t count = kernels.collect(row, padded, kernels.cut(row, padded, most), ids);
  if (count > k_ranked_max) {
    for (std::uint32_t i = 0; i < count; ++i) keys[i] = key_of(row[ids[i]], ids[i]);
    std::partial_sort(keys, keys + std::min(count, most), keys + count, std::greater<>());
    return std::min(count, most);
  }
  route_key candidates[k_ranked_max];
  for (std::uint32_t i = 0; i < count; ++i) candidates[i] = key_of(row[ids[i]], ids[i]);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t rank = 0;
    for (std::uint32_t j = 0; j < count; ++j) rank += candidates[j] > candidates[i] ? 1u : 0u;
    keys[rank] = candidates[i];
  }
  return std::min(count, most);
}

// Weights of the chosen experts, whose logits stand in `values`, best first.
void weigh(const row_kernels& kernels, const routing_params& params, const float* row,
           std::uint32_t padded, float* values) noexcept {
  const float largest = values[0];
  float sum = 0;
  kernels.exp_each(values, params.top_k, largest);
  if (params.rule.method == routing_method::default_softmax) {
    sum = kernels.exp_sum(row, padded, largest);
  } else {
    for (std::uint32_t j = 0; j < params.top_k; ++j) sum += values[j];
  }
  for (std::uint32_t j = 0; j < params.top_k; ++j) values[j] /= sum;
}

}  // namespace

expected<void> check_routing(const routing_params& params) {
  switch (params.rule.method) {
    case routing_method::default_softmax:
    case routing_method::renormalize:
    case routing_method::renormalize_naive: break;
    case routing_method::unspecified:
      return fail(reason::config_invalid, "routing.method", "unspecified",
                  "default, renormalize, renormalize_naive");
    default:
      return fail(reason::model_unsupported, "routing.method", static_cast<int>(params.rule.method),
                  "0 (default), 1 (renormalize), 4 (renormalize_naive)");
  }
  if (params.experts == 0 || params.experts > k_experts_max)
    return fail(reason::config_invalid, "routing.experts", params.experts,
                fmt::format("1 to {}", k_experts_max));
  const std::uint32_t top_k_max = std::min(params.experts, k_top_k_max);
  if (params.top_k == 0 || params.top_k > top_k_max)
    return fail(reason::config_invalid, "routing.top_k", params.top_k,
                fmt::format("1 to {}", top_k_max));
  return {};
}

expected<void> route_rows(const row_kernels& kernels, const routing_params& params,
                          const layer_routing&, const route_input& input,
                          std::span<std::int32_t> ids, std::span<float> weights) {
  const auto [logits, type, pitch_bytes, tokens, token_ids] = input;
  if (type != dtype::f32 && type != dtype::bf16 && type != dtype::f16)
    return fail(reason::invalid_dtype, "router logits", dtype_name(type), "f32, bf16, f16");
  const std::uint32_t experts = params.experts;
  const std::uint32_t top_k = params.top_k;
  const std::uint32_t padded = padded_width(experts);
  MOETIER_ASSERT(top_k >= 1 && top_k <= k_top_k_max && top_k <= experts);
  MOETIER_ASSERT(experts <= k_experts_max);
  MOETIER_ASSERT(ids.size() == std::size_t{tokens} * top_k && weights.size() == ids.size());

  alignas(32) float row[k_experts_max];
  route_key chosen[k_experts_max];
  float values[k_top_k_max + 8] = {};
  std::fill(row + experts, row + padded, k_minus_infinity);
  const auto* at = static_cast<const std::byte*>(logits);
  for (std::uint32_t t = 0; t < tokens; ++t, at += pitch_bytes) {
    widen(at, type, experts, row);
    if (const std::uint32_t bad = kernels.find_bad(row, padded); bad < padded)
      return fail(reason::router_nonfinite, t, bad);
    const std::uint32_t count = choose(kernels, row, padded, top_k, chosen);
    if (count < top_k) return fail(reason::router_starved, t, count, top_k);
    for (std::uint32_t j = 0; j < top_k; ++j) {
      ids[std::size_t{t} * top_k + j] = static_cast<std::int32_t>(id_of(chosen[j]));
      values[j] = row[id_of(chosen[j])];
    }
    weigh(kernels, params, row, padded, values);
    std::copy_n(values, top_k, weights.begin() + std::ptrdiff_t{t} * top_k);
  }
  return {};
}

expected<void> route(const routing_params& params, const layer_routing& layer,
                     const route_input& input, std::span<std::int32_t> ids,
                     std::span<float> weights) {
  const cpu_features features = detect_cpu_features();
  const row_kernels& kernels =
      features.avx2 && features.fma ? k_row_kernels_avx2 : k_row_kernels_scalar;
  return route_rows(kernels, params, layer, input, ids, weights);
}

}  // namespace moetier::kernels
