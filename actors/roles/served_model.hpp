#pragma once
// The model as the operator wants it served: what config.json says, with the routing settings on
// top. The coordinator's alone: workers hold experts, whoever chooses them. Thread: any (pure).

#include <optional>

#include "actors/config/settings.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier::roles {

// reason::config_invalid names the setting.
expected<model_description> served_model(const config::settings& settings,
                                         const model_description& files);

// The format to hold experts in, or nothing where the files' own stands. reason::config_invalid
// when the files are quantised already.
expected<std::optional<quant_kind>> wished_format(const config::settings& settings,
                                                  const model_description& files);

}  // namespace moetier::roles
