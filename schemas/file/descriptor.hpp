#pragma once
// Owner of a file descriptor: closes it at its end. Thread: owner.

#include <unistd.h>

#include <utility>

namespace moetier {

class descriptor final {
 public:
  explicit descriptor(int fd) noexcept : fd_(fd) {}  // negative: none
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  int get() const noexcept { return fd_; }
  int give_up() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace moetier
