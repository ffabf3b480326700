#pragma once
// A child process for tests: started by fork and exec with its standard input and output as lines,
// its standard error kept. Killed and reaped when it goes out of scope. Thread: owner.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace moetier {

class child_process final {
 public:
  explicit child_process(std::vector<std::string> arguments) {
    int in[2];
    int out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    id_ = fork();
    if (id_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_child_ = in[1];
    from_child_ = fdopen(out[0], "r");
  }

  ~child_process() {
    kill(SIGKILL);
    reap();
    close_input();
    std::fclose(from_child_);
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  // Whether something has been printed since the last line that was read. Requires: one line at a
  // time, as only the pipe is asked.
  bool has_line() {
    pollfd fd{.fd = fileno(from_child_), .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) == 1;
  }

  std::string read_line() {
    char* line = nullptr;
    std::size_t capacity = 0;
    const auto bytes = getline(&line, &capacity, from_child_);
    std::string text(line != nullptr ? line : "",
                     bytes > 0 ? static_cast<std::size_t>(bytes) - 1 : 0);
    std::free(line);  // style: allow raw_new: getline's buffer
    return text;
  }

  void write_line(std::string text) {
    text += '\n';
    EXPECT_EQ(write(to_child_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  void close_input() {
    if (to_child_ >= 0) close(to_child_);
    to_child_ = -1;
  }

  void kill(int signal) {
    if (id_ > 0) ::kill(id_, signal);
  }

  // Waits for its end; the exit status, or -signal.
  int reap() {
    if (id_ <= 0) return 0;
    int status = 0;
    waitpid(id_, &status, 0);
    id_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t id_ = -1;
  int to_child_ = -1;
  std::FILE* from_child_ = nullptr;
};

}  // namespace moetier
