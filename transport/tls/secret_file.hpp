#pragma once
// Reads the small files that a link's identity is made of. A key is taken only from a file that
// nobody but its owner can read. Thread: any.

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::tls {

enum class secrecy : std::uint8_t { open, secret };

// At most 1 MiB. reason::certificate_unusable names the file and what is wrong with it.
expected<std::string> read_small_file(const std::string& path, secrecy kept);

}  // namespace moetier::tls
