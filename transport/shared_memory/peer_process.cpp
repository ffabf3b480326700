#include "transport/shared_memory/peer_process.hpp"

#include <cerrno>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace moetier::transport {

expected<std::unique_ptr<peer_process>> peer_process::watch(std::uint32_t process) {
  const auto made = [](kind which, int fd) {
    return std::unique_ptr<peer_process>(new peer_process(which, fd));
  };
  if (process == static_cast<std::uint32_t>(getpid())) return made(kind::self, -1);
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0));
  if (fd >= 0) return made(kind::other, fd);
  if (errno == ESRCH || errno == EINVAL) return made(kind::absent, -1);
  return fail(reason::carrier_unavailable, "shared_memory",
              errno == EMFILE || errno == ENFILE
                  ? "file descriptors are used up; raise their limit (ulimit -n)"
                  : "this kernel cannot watch a process; set transport.carrier: ucx");
}

bool peer_process::kernel_can_watch() noexcept {
  const descriptor own(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return own.get() >= 0;
}

bool peer_process::has_ended() const noexcept {
  if (which_ != kind::other) return which_ == kind::absent;
  pollfd end{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) == 1 && (end.revents & POLLIN) != 0;
}

}  // namespace moetier::transport
