#pragma once
// The parts of the fp64 oracle: one activation, and one row through one expert with the caller's
// scratch (reference_expert() in backend.hpp brings its own). Thread: any (pure functions).

#include <span>

#include "kernels/backend.hpp"

namespace moetier::kernels {

// In double; constants as in check_activation(). g is not read where the kind has no gate.
double reference_activation(activation_kind kind, double g, double l,
                            const activation_constants& constants);

// Requires: x.size() == y.size() == H, activated.size() == I.
void reference_row(const expert_shape& shape, const expert_tensors& tensors,
                   std::span<const float> x, std::span<double> activated, std::span<double> y);

}  // namespace moetier::kernels
