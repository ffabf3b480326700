#include "actors/up/state_folder.hpp"

#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace moetier::up {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_prefix = "moetier-up-";
constexpr const char* k_owner = "owner";
constexpr std::size_t k_swept_max = 1024;  // a folder of strangers must not hold a start

// The lock of a folder's owner, taken; -1 when somebody has it, or there is none.
int take_lock(const fs::path& folder, int more_flags) {
  const int fd =
      ::open((folder / k_owner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags, 0600);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

bool is_ours(const fs::path& folder) {
  struct stat about {};
  return ::lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
         about.st_uid == ::geteuid() && (about.st_mode & 0077) == 0;
}

}  // namespace

std::size_t state_folder::sweep(const fs::path& where) {
  std::size_t removed = 0;
  std::size_t seen = 0;
  std::error_code none;
  for (fs::directory_iterator at(where, none), end; !none && at != end; at.increment(none)) {
    if (!at->path().filename().string().starts_with(k_prefix) || !is_ours(at->path())) continue;
    if (++seen > k_swept_max) break;
    const int lock = take_lock(at->path(), 0);  // one that is being made has no lock file yet
    if (lock < 0) continue;
    std::error_code kept;
    fs::remove_all(at->path(), kept);
    ::close(lock);
    removed += kept ? 0 : 1;
  }
  return removed;
}

expected<std::unique_ptr<state_folder>> state_folder::make(const fs::path& where) {
  sweep(where);
  std::string path = (where / (std::string(k_prefix) + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(reason::state_unusable, "no temporary directory can be made");
  }
  const int lock = take_lock(path, O_CREAT | O_EXCL);
  if (lock < 0) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    return fail(reason::state_unusable, "the temporary directory cannot be locked");
  }
  return std::unique_ptr<state_folder>(new state_folder(path, lock));
}

state_folder::~state_folder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  ::close(lock_);
}

}  // namespace moetier::up
