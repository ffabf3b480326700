#pragma once
// Names of Mixtral checkpoints: w1 is the gate, w3 the up and w2 the down projection.
// Thread: any (constants).

#include "workers/weights/dialect.hpp"

namespace moetier::workers {

inline constexpr dialect k_dialect_mixtral{
    .model_type = "mixtral",
    .stems = {"model.layers.", "model.language_model.layers.", "language_model.model.layers."},
    .experts = "block_sparse_moe.experts.",
    .projections = {"w1.weight", "w3.weight", "w2.weight"},
    .router = "block_sparse_moe.gate.weight",
};

}  // namespace moetier::workers
