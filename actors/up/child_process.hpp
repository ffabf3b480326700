#pragma once
// One child of `moetier up`: this same program with another command. Its standard output comes back
// by a pipe, its log goes to ours. It dies with us, however we end. Thread: owner, and the thread
// that made it must outlive it (the kernel ends a child with the thread that forked it).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "schemas/base/error.hpp"

namespace moetier::up {

class child_process final {
 public:
  static expected<std::unique_ptr<child_process>> start(const std::vector<std::string>& arguments);
  ~child_process();  // ends it at once if it still runs
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  pid_t pid() const noexcept { return pid_; }
  int exit_descriptor() const noexcept { return pid_fd_; }    // readable when it has ended
  int output_descriptor() const noexcept { return out_fd_; }  // -1 when closed
  void send(int signal) noexcept;

  // The next whole line of its output that is here already.
  std::optional<std::string> take_line();
  // The exit code, or 128 + signal, once it has ended.
  std::optional<int> take_exit();

 private:
  child_process(pid_t pid, int pid_fd, int out_fd) : pid_(pid), pid_fd_(pid_fd), out_fd_(out_fd) {}

  pid_t pid_;
  int pid_fd_;
  int out_fd_;
  std::string unread_;
  std::optional<int> exit_;
};

}  // namespace moetier::up
