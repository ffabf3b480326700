#pragma once
// route() over one given table of row kernels: what route() calls after it has chosen the widest
// table that this machine runs, and what tests call to compare the tables bit by bit. Thread: any.

#include "kernels/routing/route.hpp"
#include "kernels/routing/row_kernels.hpp"

namespace moetier::kernels {

// As route(), on `kernels`. Requires: a machine that runs them.
expected<void> route_rows(const row_kernels& kernels, const routing_params& params,
                          const layer_routing& layer, const route_input& input,
                          std::span<std::int32_t> ids, std::span<float> weights);

}  // namespace moetier::kernels
