#include "actors/roles/text_file.hpp"

#include "actors/config/input_error.hpp"
#include "schemas/file/input_file.hpp"

namespace moetier::roles {
namespace {

constexpr std::size_t k_text_bytes_max = std::size_t{64} << 20;

}  // namespace

expected<std::string> read_text(const std::string& path) {
  auto text = input_file::read_text(path, k_text_bytes_max);
  if (!text) return tl::unexpected(config::of_input_file(text.error()));
  return text;
}

}  // namespace moetier::roles
