#pragma once
// Writes a small text file: to a name beside it first, then renamed, so that a reader sees the old
// file or the whole new one. Thread: any (owns nothing between calls).

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::cli {

// reason::file_unwritable names the file.
expected<void> write_text(const std::string& path, const std::string& text);

}  // namespace moetier::cli
