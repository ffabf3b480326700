#pragma once
// Writes a small text file as a whole or not at all, and only over a regular file. Thread: any
// (owns nothing between calls).

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::cli {

// Whether both name one file, through links or not; an empty name is none.
bool same_file(const std::string& a, const std::string& b);

// reason::file_unwritable names the file.
expected<void> write_text(const std::string& path, const std::string& text);

}  // namespace moetier::cli
