#pragma once
// Reads the small files that a link's identity is made of. A key is taken only from a file that
// nobody but its owner can read. Thread: any.

#include <cstdint>
#include <string>

#include "schemas/base/error.hpp"

namespace moetier::tls {

enum class secrecy : std::uint8_t { open, secret };

struct small_file {
  std::string text;
  std::uint32_t mode = 0;  // who may do what with it: its lower twelve bits
};

// At most 1 MiB. reason::certificate_unusable names the file and what is wrong with it.
expected<small_file> read_small_file(const std::string& path, secrecy kept);

}  // namespace moetier::tls
