#pragma once
// From a Hugging Face config.json to a model description. Whatever the tier does not know in full
// is refused with reason::model_unsupported, naming field, value and what is supported; nothing is
// guessed. The file is foreign: at most 1 MiB, no doubled key, nesting and every number bounded.
// It never looks at weights: whether they agree is the checkpoint's check.
// Thread: any.

#include <cstddef>
#include <string>
#include <string_view>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/stored_form.hpp"

namespace moetier {

inline constexpr std::size_t k_config_bytes_max = 1024 * 1024;

// The description in the file `path`.
expected<model_description> read_config(const std::string& path);

// The same from its text; `name` stands for the file in sentences.
expected<model_description> parse_config(std::string_view text, std::string_view name);

// The description with what only readers of the weights need.
struct model_reading {
  model_description model;
  stored_form form;
};
expected<model_reading> read_config_and_form(const std::string& path);
expected<model_reading> parse_config_and_form(std::string_view text, std::string_view name);

}  // namespace moetier
