#include "schemas/file/file_draft.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

namespace moetier {

std::string_view obstacle_at(const std::string& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return {};
  return S_ISDIR(found.st_mode) ? "it is a directory" : "it exists and is no regular file";
}

file_draft::~file_draft() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool file_draft::create() {
  constexpr int k_attempts = 100;  // names of other writers, or left by a killed one
  for (int i = 0; i < k_attempts; ++i) {
    std::string name = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), i);
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) temporary_ = std::move(name);
    if (descriptor_ >= 0 || errno != EEXIST) break;
  }
  return descriptor_ >= 0;
}

bool file_draft::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

bool file_draft::commit() {
  if (::fsync(descriptor_) != 0) return false;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
  temporary_.clear();
  return sync_folder();
}

bool file_draft::sync_folder() const {
  const auto slash = path_.rfind('/');
  const std::string folder = slash == path_.npos ? "." : path_.substr(0, slash + 1);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool synced = ::fsync(descriptor) == 0;
  ::close(descriptor);
  return synced;
}

}  // namespace moetier
