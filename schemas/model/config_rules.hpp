#pragma once
// The parts of a configuration, each from its keys as a family says: internal to schemas/model.
// Every function refuses with reason::model_unsupported by field. Thread: any.

#include <vector>

#include "schemas/model/config_fields.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/stored_form.hpp"

namespace moetier {

// How many decoder layers there are.
expected<std::uint32_t> layers_total_of(const config_fields& config, const family& kin);

expected<std::vector<layer_id>> moe_layers_of(const config_fields& config, const family& kin,
                                              std::uint32_t layers);

// Which MoE layers choose experts by token id. Requires: model.moe_layers are set.
expected<std::vector<bool>> hashed_layers_of(const config_fields& config, const family& kin,
                                             const model_description& model);

// Method and parameters. Requires: model.experts and top_k are set.
expected<routing_rule> routing_of(const config_fields& config, const family& kin,
                                  const model_description& model);

// Activation, its constants and the clamps by layer. Requires: model.moe_layers are set.
expected<void> read_activation(const config_fields& config, const family& kin,
                               model_description& model);

// Requires: model.intermediate_size is set.
expected<shared_experts_rule> shared_experts_of(const config_fields& config, const family& kin,
                                                const model_description& model);

// Element type or quantised format; `whole` is the file, `config` the text model's part of it.
expected<void> read_format(const config_fields& whole, const config_fields& config,
                           const family& kin, model_description& model, stored_form& form);

}  // namespace moetier
