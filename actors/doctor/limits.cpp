#include "actors/doctor/limits.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace moetier::doctor {
namespace {

constexpr unsigned k_cap_ipc_lock = 14;
constexpr std::uint64_t k_files_least = 256;  // below: clients are turned away long before a limit
constexpr std::uint64_t k_files_enough =
    1024;  // 256 clients, 64 workers and 64 sources, each a few
// Receive buffers of one member on shared memory; they grow with what is on its way.
constexpr std::uint64_t k_shm_each = std::uint64_t{32} << 20;

std::uint64_t soft_limit(int which) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(which), &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? k_unlimited : static_cast<std::uint64_t>(limit.rlim_cur);
}

bool has_capability(unsigned bit) {
  std::ifstream status("/proc/self/status");
  for (std::string name, value; status >> name && std::getline(status, value);) {
    if (name == "CapEff:") return (std::strtoull(value.c_str(), nullptr, 16) >> bit & 1) != 0;
  }
  return false;
}

}  // namespace

memlock_facts probe_memlock() {
  return {.limit_bytes = soft_limit(RLIMIT_MEMLOCK),
          .may_exceed = has_capability(k_cap_ipc_lock),
          .registers = false};
}

finding judge_memlock(const memlock_facts& f) {
  if (f.limit_bytes == k_unlimited) return pass("memlock", "unlimited");
  const std::string limit = rough_size(f.limit_bytes);
  if (f.may_exceed) return pass("memlock", limit + ", and CAP_IPC_LOCK to go beyond it");
  if (!f.registers) {
    return pass("memlock", limit + "; shared memory and TCP lock none, and nothing else is here");
  }
  return failure("memlock", limit + " may be locked; RDMA devices and GPU workers register more",
                 "LimitMEMLOCK=infinity in the unit, `ulimit -l unlimited` in a shell, or the "
                 "capability IPC_LOCK of a container");
}

std::uint64_t probe_open_files() { return soft_limit(RLIMIT_NOFILE); }

finding judge_open_files(std::uint64_t limit) {
  if (limit == k_unlimited) return pass("open_files", "unlimited");
  const std::string seen = fmt::format("{} open files at most", limit);
  const std::string remedy = "LimitNOFILE=65536 in the unit, or `ulimit -n 65536` in a shell";
  if (limit < k_files_least) return failure("open_files", seen, remedy);
  if (limit < k_files_enough) return warn("open_files", seen, remedy);
  return pass("open_files", seen);
}

shm_facts probe_shm(const std::string& folder) {
  shm_facts f;
  struct stat about {};
  struct statvfs space {};
  if (::stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) return f;
  f.there = true;
  f.mode = about.st_mode & 07777;
  f.writable = ::access(folder.c_str(), W_OK | X_OK) == 0;
  if (::statvfs(folder.c_str(), &space) == 0) {
    f.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
    f.size_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
  }
  return f;
}

finding judge_shm(const shm_facts& f, std::uint32_t members) {
  const std::string mount =
      "mount a tmpfs on /dev/shm (docker: --shm-size=1g; Kubernetes: an "
      "emptyDir of medium Memory)";
  if (!f.there) return failure("shm", "/dev/shm is not there", mount);
  const std::uint64_t needed = members * k_shm_each;
  const std::string seen = fmt::format("/dev/shm: {} free of {}, mode {:04o}",
                                       rough_size(f.free_bytes), rough_size(f.size_bytes), f.mode);
  if (!f.writable) {
    return failure("shm", seen + ", not writable for this user", "chmod 1777 /dev/shm");
  }
  if (f.free_bytes < needed) {
    return failure("shm",
                   fmt::format("{}; {} processes take up to {}", seen, members, rough_size(needed)),
                   mount + ", larger than that");
  }
  if ((f.mode & 01777) != 01777) {
    return warn("shm", seen + "; other users' processes cannot share it", "chmod 1777 /dev/shm");
  }
  return pass("shm", seen);
}

}  // namespace moetier::doctor
