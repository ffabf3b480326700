#include "actors/doctor/cross_memory.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/doctor/control_groups.hpp"

namespace moetier::doctor {
namespace {

// The errno that `act` leaves in a child of this process, 0 if none; a child because a parent may
// always look at it, while members of a tier are strangers to each other.
template <class Act>
int error_in_child(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act() & 0xff);
  int ended = 0;
  if (child < 0 || ::waitpid(child, &ended, 0) != child || !WIFEXITED(ended)) return EAGAIN;
  return WEXITSTATUS(ended);
}

}  // namespace

cross_memory_facts probe_cross_memory() {
  cross_memory_facts f;
  if (const auto scope = number_in("/proc/sys/kernel/yama/ptrace_scope")) {
    f.ptrace_scope = static_cast<int>(*scope);
  }
  static int there = 7;
  const pid_t self = ::getpid();
  f.read_error = error_in_child([self] {
    int copy = 0;
    iovec into{&copy, sizeof copy};
    iovec from{&there, sizeof there};
    return ::process_vm_readv(self, &into, 1, &from, 1, 0) == sizeof copy ? 0 : errno;
  });
  const int file = ::memfd_create("moetier-doctor", MFD_CLOEXEC);
  if (file < 0) {
    f.link_error = errno;
    return f;
  }
  const std::string link = fmt::format("/proc/{}/fd/{}", self, file);
  f.link_error =
      error_in_child([&link] { return ::open(link.c_str(), O_RDWR | O_CLOEXEC) >= 0 ? 0 : errno; });
  ::close(file);
  return f;
}

finding judge_cross_memory(const cross_memory_facts& f) {
  const std::string scope =
      f.ptrace_scope ? fmt::format("ptrace_scope {}", *f.ptrace_scope) : "no Yama";
  if (f.read_error == 0) {
    return pass("cross_memory", scope + "; one process reads another's memory");
  }
  const std::string seen = fmt::format("{}; one process may not read another's memory: {}", scope,
                                       std::strerror(f.read_error));
  if (f.ptrace_scope.value_or(0) > 0) {
    return warn("cross_memory", seen,
                "sysctl kernel.yama.ptrace_scope=0, or the capability SYS_PTRACE: without it large "
                "rows are copied twice");
  }
  return warn("cross_memory", seen,
              "let the seccomp profile allow process_vm_readv and process_vm_writev: without them "
              "large rows are copied twice");
}

finding judge_proc_links(const cross_memory_facts& f) {
  if (f.link_error == 0) return pass("proc_links", "/proc/PID/fd of another process opens");
  return warn(
      "proc_links",
      fmt::format("/proc/PID/fd of another process does not open: {}", std::strerror(f.link_error)),
      "mount /proc without hidepid, let all members share one pid namespace, or set "
      "UCX_POSIX_USE_PROC_LINK=n for all of them");
}

}  // namespace moetier::doctor
