#include "actors/cli/output_text.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace moetier::cli {

expected<void> write_text(const std::string& path, const std::string& text) {
  const std::string beside = path + ".part";
  const auto refuse = [&](const std::string& why) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    return fail(reason::file_unwritable, path, why);
  };
  {
    errno = 0;
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    if (!file) return refuse(std::strerror(errno));
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) return refuse(std::strerror(errno));
  }
  std::error_code wrong;
  std::filesystem::rename(beside, path, wrong);
  if (wrong) return refuse(wrong.message());
  return {};
}

}  // namespace moetier::cli
