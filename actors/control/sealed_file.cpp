#include "actors/control/sealed_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include <fmt/core.h>

namespace moetier::actors {

expected<sealed_file> sealed_file::make(std::string_view bytes) {
  sealed_file made(memfd_create("moetier", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  while (made.fd_ >= 0 && !bytes.empty()) {
    const ssize_t put = ::write(made.fd_, bytes.data(), bytes.size());
    if (put <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (made.fd_ < 0 || !bytes.empty() || ::fcntl(made.fd_, F_ADD_SEALS, seals) != 0) {
    return fail(reason::internal_error, "no memory can be had as a file");
  }
  return made;
}

sealed_file::sealed_file(sealed_file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

sealed_file& sealed_file::operator=(sealed_file&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

sealed_file::~sealed_file() {
  if (fd_ >= 0) ::close(fd_);
}

std::string sealed_file::name() const { return fmt::format("/proc/self/fd/{}", fd_); }

}  // namespace moetier::actors
