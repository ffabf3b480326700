#pragma once
// A whole small text file, such as a plan. Thread: any.

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::roles {

// At most 64 MiB. reason::file_unreadable, file_malformed.
expected<std::string> read_text(const std::string& path);

}  // namespace moetier::roles
