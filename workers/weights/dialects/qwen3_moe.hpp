#pragma once
// Names of Qwen3-MoE checkpoints. Thread: any (constants).

#include "workers/weights/dialect.hpp"

namespace moetier::workers {

inline constexpr dialect k_dialect_qwen3_moe{
    .model_type = "qwen3_moe",
    .stems = {"model.layers.", "model.language_model.layers.", "language_model.model.layers."},
    .experts = "mlp.experts.",
    .projections = {"gate_proj.weight", "up_proj.weight", "down_proj.weight"},
    .router = "mlp.gate.weight",
};

}  // namespace moetier::workers
