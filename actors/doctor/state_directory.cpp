#include "actors/doctor/state_directory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace moetier::doctor {
namespace {

constexpr int k_tries = 5;
constexpr duration_ns k_slow = 100 * k_millisecond;

// Writes 4 KiB and flushes file and directory, as the durable record is written; errno or 0.
int flush_once(const std::string& folder, const std::string& file) {
  const std::array<char, 4096> bytes{};
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  int problem = 0;
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  if (written < 0) problem = errno;
  if (problem == 0 && written != static_cast<ssize_t>(bytes.size())) problem = ENOSPC;
  if (problem == 0 && ::fsync(fd) != 0) problem = errno;
  ::close(fd);
  const int held = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (held < 0) return problem != 0 ? problem : errno;
  if (problem == 0 && ::fsync(held) != 0) problem = errno;
  ::close(held);
  ::unlink(file.c_str());
  return problem;
}

}  // namespace

state_facts probe_state(const std::string& path, bool given) {
  state_facts f{.path = path, .given = given};
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (parent.empty()) parent = ".";
    f.parent_writable = ::access(parent.c_str(), W_OK | X_OK) == 0;
    return f;
  }
  f.there = true;
  f.directory = S_ISDIR(about.st_mode);
  f.own = about.st_uid == ::geteuid();
  f.mode = about.st_mode & 07777;
  if (!f.directory) return f;
  const std::string file = fmt::format("{}/doctor.{}", path, ::getpid());
  for (int i = 0; i < k_tries && f.write_error == 0; ++i) {
    const time_ns began = monotonic_now();
    f.write_error = flush_once(path, file);
    f.flush = std::max(f.flush, monotonic_now() - began);
  }
  return f;
}

finding judge_state(const state_facts& f) {
  const char* const check = "state_dir";
  if (!f.there) {
    if (f.parent_writable) return pass(check, f.path + " is not there; a start makes it");
    const std::string seen = f.path + " is not there and this user cannot make it";
    const std::string remedy =
        "install -d -m 0700 -o USER " + f.path + ", or another coordinator.state_dir";
    // `up` needs none unless it is told of one.
    return f.given ? failure(check, seen, remedy) : warn(check, seen, remedy);
  }
  if (!f.directory) return failure(check, f.path + " is no directory", "name a directory");
  if (!f.own) {
    return failure(check, f.path + " belongs to another user",
                   "chown it to the user that runs the coordinator");
  }
  if ((f.mode & 0077) != 0) {
    return failure(check, fmt::format("{} has mode {:04o}", f.path, f.mode),
                   "chmod 0700 " + f.path + ": what lies there decides what workers load");
  }
  if (f.write_error != 0) {
    return failure(check, fmt::format("{}: {}", f.path, std::strerror(f.write_error)),
                   "mount it writable and make room; a plan is decided by a write there");
  }
  const std::string seen = fmt::format("{}: mode 0700, slowest of {} flushes {:.1f} ms", f.path,
                                       k_tries, static_cast<double>(f.flush) / k_millisecond);
  if (f.flush > k_slow) {
    return warn(check, seen, "use a local disk: each plan and each restart waits for such flushes");
  }
  return pass(check, seen);
}

}  // namespace moetier::doctor
