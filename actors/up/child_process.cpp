#include "actors/up/child_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
extern "C" {  // glibc 2.36 forgot to say so itself
#include <sys/pidfd.h>
}
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace moetier::up {
namespace {

constexpr std::size_t k_line_bytes_max = 64 * 1024;
constexpr int k_code_unknown = 70;

// Between fork and exec: only what is safe there.
[[noreturn]] void become(char* const* arguments, int out_fd, pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before we asked
  // Its own handler takes SIGHUP, once there is one; until then it waits.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGHUP);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  // A terminal's Ctrl-C goes to its whole foreground group: children stop when we say so.
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out_fd, STDOUT_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

}  // namespace

expected<std::unique_ptr<child_process>> child_process::start(
    const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(reason::internal_error, std::string("pipe: ") + std::strerror(errno));
  }
  // Whoever started us may have ignored it, and then children end without a code.
  std::signal(SIGCHLD, SIG_DFL);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(argv.data(), ends[1], parent);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return fail(reason::internal_error, std::string("fork: ") + std::strerror(errno));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const int pid_fd = ::pidfd_open(pid, 0);
  if (pid_fd < 0) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ::close(ends[0]);
    return fail(reason::internal_error, std::string("pidfd_open: ") + std::strerror(errno));
  }
  ::fcntl(pid_fd, F_SETFD, FD_CLOEXEC);
  return std::unique_ptr<child_process>(new child_process(pid, pid_fd, ends[0]));
}

child_process::~child_process() {
  if (!take_exit()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(pid_fd_);
  if (out_fd_ >= 0) ::close(out_fd_);
}

void child_process::send(int signal) noexcept {
  if (!exit_) ::kill(pid_, signal);
}

std::optional<std::string> child_process::take_line() {
  char block[4096];
  while (out_fd_ >= 0) {
    const ssize_t got = ::read(out_fd_, block, sizeof block);
    if (got > 0 && unread_.size() < k_line_bytes_max) {
      unread_.append(block, static_cast<std::size_t>(got));
    } else if (got == 0) {
      ::close(out_fd_);
      out_fd_ = -1;
    } else if (got < 0) {
      break;
    }
  }
  const std::size_t end = unread_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::optional<int> child_process::take_exit() {
  if (exit_) return exit_;
  int wait_status = 0;
  const pid_t ended = ::waitpid(pid_, &wait_status, WNOHANG);
  if (ended < 0 && errno == ECHILD) return exit_ = k_code_unknown;  // somebody else has taken it
  if (ended != pid_) return std::nullopt;
  exit_ = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  return exit_;
}

}  // namespace moetier::up
