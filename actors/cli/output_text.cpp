#include "actors/cli/output_text.hpp"

#include <cerrno>
#include <system_error>

#include "schemas/file/file_draft.hpp"

namespace moetier::cli {

expected<void> write_text(const std::string& path, const std::string& text) {
  if (const std::string_view obstacle = obstacle_at(path); !obstacle.empty())
    return fail(reason::file_unwritable, path, obstacle);
  file_draft file(path);
  if (!file.create() || !file.write(std::as_bytes(std::span(text))) || !file.commit())
    return fail(reason::file_unwritable, path, std::generic_category().message(errno));
  return {};
}

}  // namespace moetier::cli
