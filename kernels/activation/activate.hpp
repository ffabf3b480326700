#pragma once
// One activation of one unit, the readable entry to activation_math.hpp for baseline code.
// Thread: any.

#include "schemas/model/activation.hpp"

namespace moetier::kernels {

// g = gate output (not read where the kind has no gate), l = linear output, both after the bias.
float activate(activation_kind kind, float g, float l, const activation_constants& constants);

// The limit that kernels read: +inf where there is none.
float clamp_limit(const activation_constants& constants) noexcept;

}  // namespace moetier::kernels
