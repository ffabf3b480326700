#pragma once
// Experts that are not chosen by score: a token's row of a hash layer's table, a row of a static
// table, round robin. Thread: any.

#include "kernels/routing/route.hpp"

namespace moetier::kernels {

// Writes the k ids of token `t` in table order. Requires: not a hash layer, or a legal token id.
void table_ids(const routing_params& params, const layer_routing& layer, const route_input& input,
               std::uint32_t t, std::uint16_t* ids) noexcept;

// The weights of methods 12 and 13: the table's or 1; 0 where the expert's logit is -inf. `row` may
// be null.
void table_weights(const routing_params& params, const layer_routing& layer, std::uint32_t t,
                   const std::uint16_t* ids, const float* row, float* weights) noexcept;

}  // namespace moetier::kernels
