#include "actors/roles/text_file.hpp"

#include <fstream>

namespace moetier::roles {
namespace {

constexpr std::streamoff k_text_bytes_max = 64 << 20;

}  // namespace

expected<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return fail(reason::file_unreadable, path, "it cannot be opened");
  const std::streamoff size = file.tellg();
  if (size < 0) return fail(reason::file_unreadable, path, "it is no plain file");
  if (size > k_text_bytes_max)
    return fail(reason::file_malformed, path, "it is larger than 64 MiB");
  std::string text(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  file.read(text.data(), size);
  if (file.gcount() != size) return fail(reason::file_unreadable, path, "reading failed");
  return text;
}

}  // namespace moetier::roles
