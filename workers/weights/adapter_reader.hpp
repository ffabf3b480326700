#pragma once
// One low-rank adapter out of a directory in PEFT form: adapter_config.json and
// adapter_model.safetensors, whose tensors are named
// base_model.model.{name of the expert's split tensor without .weight}.lora_A.weight [r, in] and
// .lora_B.weight [out, r], in BF16, F16 or F32. An expert that is touched has all of its
// projections; whatever the tier would not compute (attention, shared experts, other tensors) is
// refused by name, since ignoring it in silence would give other outputs than the adapter's.
// Thread: any.

#include <cstddef>
#include <memory>
#include <string>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "workers/store/adapter_set.hpp"
#include "workers/weights/tensor_naming.hpp"

namespace moetier::workers {

// reason::lora_unsupported for what the tier does not compute, weight_mismatch by tensor for what
// lacks, is mis-shaped or not finite, memory_insufficient above `bytes_max` of f32 values, and what
// the files' readers say. The pages hold the model's experts in whatever format; shapes are those
// of the unquantised matrices.
expected<adapter_ptr> read_adapter(const std::string& directory, const model_description& model,
                                   const tensor_naming& naming, std::size_t bytes_max);

}  // namespace moetier::workers
