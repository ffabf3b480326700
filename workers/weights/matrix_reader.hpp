#pragma once
// One expert's matrices out of a layer's tensors into canonical bytes: undoes packing, stacking,
// interleaving and transposition, cuts shared experts into pieces of one expert's size, converts
// scales. What it wrote is checked before it is given out. Thread: any.

#include <cstdint>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "workers/store/expert_source.hpp"
#include "workers/weights/layer_tensors.hpp"
#include "workers/weights/tensor_naming.hpp"

namespace moetier::workers {

// Expert 0..E-1, or E + piece of the shared experts. Requires: tensors are found, buffers fit.
expected<void> read_expert(const model_description& model, const tensor_naming& naming,
                           const layer_tensors& tensors, layer_id layer, std::uint32_t expert,
                           const expert_buffers& into);

}  // namespace moetier::workers
