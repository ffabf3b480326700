#pragma once
// Why a tier cannot hold a model's shared experts, as the sentence of a refused session says it:
// the model has none, or has some of a form that pseudo-experts beside the routed ones cannot take.
// Thread: any.

#include <string_view>

#include "schemas/model/model_description.hpp"

namespace moetier {

// Empty where the tier can hold them.
std::string_view shared_experts_refusal(const model_description& model) noexcept;

}  // namespace moetier
