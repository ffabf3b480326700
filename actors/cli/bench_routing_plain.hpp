#pragma once
// Routing as one writes it first: expf for each expert, a partial sort, no vectors. It is the
// baseline of `bench kernels --part routing`; ids agree with the product's but where two keys are
// within rounding of each other. -inf, NaN and tables by token id are not its concern. Thread: any.

#include "kernels/routing/route.hpp"

namespace moetier::cli {

// One row. Requires: check_routing(params) holds; one of the methods that choose by score;
// all logits finite.
void route_plain(const kernels::routing_params& params, const layer_routing& layer,
                 const float* logits, std::int32_t* ids, float* weights);

}  // namespace moetier::cli
