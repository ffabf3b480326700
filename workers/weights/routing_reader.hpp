#pragma once
// What one layer's router has beside its matrix, out of the model's files: selection bias,
// per-expert scale, token table, the shared experts' gate. Checked as it is read: shapes, finite
// numbers, ids in range and distinct in a row. Thread: any.

#include <cstddef>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/routing_tables.hpp"
#include "schemas/model/stored_form.hpp"
#include "schemas/safetensors/shard_set.hpp"
#include "workers/weights/tensor_naming.hpp"

namespace moetier::workers {

expected<layer_routing> read_layer_routing(const model_description& model, const stored_form& form,
                                           const tensor_naming& naming, const shard_set& shards,
                                           std::size_t moe_index);

}  // namespace moetier::workers
