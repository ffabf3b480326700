#pragma once
// Routing: from router logits to the k chosen experts of each token and their weights. Pure: no
// slots, workers, wires, clocks. Position j of a row holds the j-th largest key; equal keys (-0 =
// +0): lower expert id. One operation sequence everywhere, so ids and weights are equal in bits on
// every machine. Thread: any.

#include <cstdint>
#include <span>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier::kernels {

struct routing_params {
  routing_method method = routing_method::unspecified;
  std::uint32_t experts = 0;  // E
  std::uint32_t top_k = 0;    // k

  bool operator==(const routing_params&) const = default;
};

// reason::config_invalid / model_unsupported unless the method is known and 1 <= k <= min(E, 256),
// E <= 4096.
expected<void> check_routing(const routing_params& params);

// logits [tokens, E] of `type` (f32, bf16, f16) at row pitch `pitch_bytes` -> ids i32 [tokens, k],
// weights f32 [tokens, k]. NaN or +inf in a row: reason::router_nonfinite (row, column), lowest row
// first; -inf excludes that expert; fewer than k left: reason::router_starved. On error the outputs
// are undefined. Never allocates. Requires: check_routing(params) holds; ids and weights have
// tokens * k elements.
expected<void> route(const routing_params& params, const void* logits, dtype type,
                     std::size_t pitch_bytes, std::uint32_t tokens, std::span<std::int32_t> ids,
                     std::span<float> weights);

// Checks given ids and weights [tokens, k]: -1 = no expert (its weight is set to 0); other ids in
// 0..E-1, distinct per row (reason::invalid_expert, duplicate_expert); weights of chosen experts
// finite (reason::router_nonfinite).
expected<void> check_given(std::uint32_t experts, std::uint32_t top_k, std::uint32_t tokens,
                           std::span<const std::int32_t> ids, std::span<float> weights);

}  // namespace moetier::kernels
