#pragma once
// Routing: from router logits to the k chosen experts of each token and their weights. Pure: no
// slots, workers, wires, clocks. Position j of a row holds the j-th largest key; equal keys (-0 =
// +0): lower expert id. One operation sequence everywhere, so ids and weights are equal in bits on
// every machine. Thread: any.

#include <cstdint>
#include <span>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"
#include "schemas/model/routing_rule.hpp"
#include "schemas/model/routing_tables.hpp"

namespace moetier::kernels {

struct routing_params {
  routing_rule rule;
  std::uint32_t experts = 0;  // E; ids E.. are identity experts where the rule has some
  std::uint32_t top_k = 0;    // k

  std::uint32_t columns() const noexcept { return experts + rule.identity_experts; }
  bool operator==(const routing_params&) const = default;
};

// reason::config_invalid / model_unsupported unless the method is known, its parameters are legal
// and 1 <= k <= min(columns, 256), columns <= 4096.
expected<void> check_routing(const routing_params& params);

// reason::weight_mismatch unless the layer's bias, scales and tables have the lengths that the
// params ask for, are finite, and name experts of the layer, each once a row;
// reason::config_invalid where the method has no use for one of them or lacks its table. Once per
// layer, when loaded. Requires: check_routing(params) holds.
expected<void> check_layer(const routing_params& params, const layer_routing& layer);

// One call's router input: logits [tokens, columns] of `type` (f32, bf16, f16) at row pitch
// `pitch_bytes`; a hash layer also needs token_ids [tokens]. Methods 12 and 13 may go without
// logits.
struct route_input {
  const void* logits = nullptr;
  dtype type = dtype::f32;
  std::size_t pitch_bytes = 0;
  std::uint32_t tokens = 0;
  std::span<const std::int32_t> token_ids{};
  std::uint32_t layer = 0;  // the model layer's number, for sentences
};

// -> ids i32 [tokens, k], weights f32 [tokens, k]. NaN or +inf in a row: reason::router_nonfinite
// (row, column), lowest row first; -inf excludes that expert (chosen by a table, it has weight 0);
// fewer than k left: reason::router_starved; a hash layer without token ids:
// reason::token_id_missing, an id outside its table: reason::token_id_invalid. On error the outputs
// are undefined. Never allocates but for the text of an error.
// Requires: check_routing(params) and check_layer(params, layer) hold; ids and weights have tokens
// * k elements.
expected<void> route(const routing_params& params, const layer_routing& layer,
                     const route_input& input, std::span<std::int32_t> ids,
                     std::span<float> weights);

// As route(), but a bad row does not fail the call: its ids are -1, its weights 0 and its flag 1;
// the flags of other rows are 0 and their bits what route() gives. Requires: flags [tokens].
expected<void> route_flagging(const routing_params& params, const layer_routing& layer,
                              const route_input& input, std::span<std::int32_t> ids,
                              std::span<float> weights, std::span<std::uint8_t> flags);

// Checks given ids and weights [tokens, k]: -1 = no expert (its weight is set to 0); other ids in
// 0..experts-1, distinct per row (reason::invalid_expert, duplicate_expert); weights of chosen
// experts finite (reason::router_nonfinite). A caller whose rule has identity experts passes
// columns() as `experts`.
expected<void> check_given(std::uint32_t experts, std::uint32_t top_k, std::uint32_t tokens,
                           std::span<const std::int32_t> ids, std::span<float> weights);

}  // namespace moetier::kernels
