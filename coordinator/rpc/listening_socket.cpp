#include "coordinator/rpc/listening_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "transport/client/link/socket_address.hpp"

namespace moetier::coordinator {
namespace {

int open_socket(const client::socket_address& address) {
  return socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

bool somebody_answers(const client::socket_address& address) {
  const int fd = open_socket(address);
  const bool answered =
      fd >= 0 && (connect(fd, address.get(), address.length) == 0 || errno == EAGAIN);
  if (fd >= 0) close(fd);
  return answered;
}

}  // namespace

expected<listening_socket> listening_socket::tcp(std::string_view text, bool beyond_loopback) {
  constexpr const char* k_key = "coordinator.rpc_listen";
  const auto addresses = client::parse_address(k_key, text);
  if (!addresses) return unexpected_error(addresses.error());
  const client::socket_address& address = addresses->front();
  if (address.is_unix()) return fail(reason::config_invalid, k_key, text, "host:port");
  if (!address.is_loopback() && !beyond_loopback) {
    return fail(reason::config_invalid, k_key, text,
                "a loopback address while there are no certificates");
  }
  listening_socket made(open_socket(address));
  const int on = 1;
  // A restarted coordinator must not wait for the old one's closed connections to be forgotten.
  if (made.fd_ >= 0) setsockopt(made.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (made.fd_ >= 0 && bind(made.fd_, address.get(), address.length) == 0 &&
      listen(made.fd_, SOMAXCONN) == 0) {
    return made;
  }
  if (errno == EADDRINUSE) return fail(reason::address_in_use, fmt::format("RPC {}", text));
  return fail(reason::config_invalid, k_key, text, "an address of this machine");
}

expected<listening_socket> listening_socket::local(const std::string& path) {
  constexpr const char* k_key = "coordinator.admin_socket";
  const auto addresses = client::parse_address(k_key, fmt::format("unix:{}", path));
  if (!addresses) {
    return fail(reason::config_invalid, k_key, path, "a path of 1 to 107 bytes");
  }
  const client::socket_address& address = addresses->front();
  struct stat about {};
  if (lstat(path.c_str(), &about) == 0) {
    if (!S_ISSOCK(about.st_mode)) {
      return fail(reason::config_invalid, k_key, path, "a path where nothing else lies");
    }
    if (somebody_answers(address)) {
      return fail(reason::address_in_use, fmt::format("administration {}", path));
    }
    unlink(path.c_str());
  }
  listening_socket made(open_socket(address));
  // Nobody can connect before listen(), so nobody sees the mode that bind() left.
  if (made.fd_ >= 0 && bind(made.fd_, address.get(), address.length) == 0) {
    made.file_ = path;
    if (chmod(path.c_str(), 0600) == 0 && listen(made.fd_, SOMAXCONN) == 0) return made;
  }
  return fail(reason::config_invalid, k_key, path,
              "a path in a folder that this process may write");
}

listening_socket::listening_socket(listening_socket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), file_(std::exchange(other.file_, {})) {}

listening_socket& listening_socket::operator=(listening_socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(file_, other.file_);
  return *this;
}

listening_socket::~listening_socket() {
  if (fd_ < 0) return;
  if (!file_.empty()) unlink(file_.c_str());
  close(fd_);
}

std::uint16_t listening_socket::port() const noexcept {
  client::socket_address bound;
  bound.length = sizeof bound.bytes;
  getsockname(fd_, bound.get(), &bound.length);
  return bound.port();
}

}  // namespace moetier::coordinator
