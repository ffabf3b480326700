#pragma once
// Builds the settings: defaults < YAML file < environment < flags, then the rules that join several
// keys. The only way from text to settings; remembers where each value came from. Thread: any (pure
// functions).

#include <map>
#include <span>
#include <string>
#include <vector>

#include "actors/config/layer.hpp"
#include "actors/config/settings.hpp"
#include "schemas/base/error.hpp"

namespace moetier::config {

struct loaded {
  settings values;
  std::map<std::string, std::string> tenant_origins;  // of tenants' keys that were given
  std::vector<std::string> origins;  // one per row of key_table(): "default" or a place
};

// Layers in rising precedence. reason::config_unknown_key, config_invalid, not_enabled; the text
// begins with the place.
expected<loaded> load(std::span<const layer> layers);

// What --print-config shows: YAML that load() takes, each line with its origin; or one JSON
// document.
std::string print_yaml(const loaded& l);
std::string print_json(const loaded& l);

}  // namespace moetier::config
