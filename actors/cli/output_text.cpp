#include "actors/cli/output_text.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "schemas/file/file_draft.hpp"

namespace moetier::cli {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return !a.empty() && !b.empty() &&
         std::filesystem::weakly_canonical(a, none) == std::filesystem::weakly_canonical(b, none);
}

expected<void> write_text(const std::string& path, const std::string& text) {
  if (const std::string_view obstacle = obstacle_at(path); !obstacle.empty())
    return fail(reason::file_unwritable, path, obstacle);
  file_draft file(path);
  if (!file.create() || !file.write(std::as_bytes(std::span(text))) || !file.commit())
    return fail(reason::file_unwritable, path, std::generic_category().message(errno));
  return {};
}

}  // namespace moetier::cli
