#pragma once
// One layer of configuration: entries as text, each with the place it was written. Three readers
// make them (YAML file, environment, flags); the loader alone gives them meaning. Thread: any
// (values, pure functions).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::config {

struct entry {
  std::string key;
  std::string value;
  std::string place;  // "tier.yaml:12", "environment MOETIER_LOG_LEVEL", "flag --log-level"
};
using layer = std::vector<entry>;

// A mapping of sections, each a mapping of scalars; nothing else. A doubled key, a list where a
// value belongs, a second document: reason::file_malformed with file and line.
expected<layer> read_yaml(std::string_view text, std::string_view file_name);
// reason::file_unreadable, or as read_yaml. At most 1 MiB.
expected<layer> read_yaml_file(const std::string& path);

// MOETIER_ + key, dots as _, upper case. Variables of other names are not ours; one that begins
// like a section but names no key is an error, except the names that Kubernetes makes for services.
expected<layer> read_environment(std::span<const std::string> variables);

}  // namespace moetier::config
