#include "actors/doctor/peer_line.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace moetier::doctor {
namespace {

using addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

addresses resolve(const config::endpoint& at, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  if (::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, &::freeaddrinfo};
}

bool ready(int fd, short what, duration_ns limit) {
  pollfd p{fd, what, 0};
  return ::poll(&p, 1, static_cast<int>(limit / k_millisecond)) > 0;
}

// 0, or the errno of a connection that was not made within the limit.
int connect_within(int fd, const addrinfo& to, duration_ns limit) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!ready(fd, POLLOUT, limit)) return ETIMEDOUT;
  int problem = 0;
  socklen_t bytes = sizeof problem;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &bytes);
  return problem;
}

}  // namespace

expected<std::unique_ptr<peer_line>> peer_line::connect(const config::endpoint& to,
                                                        duration_ns limit) {
  const addresses found = resolve(to, 0);
  if (!found) return fail(reason::coordinator_unreached, "its name is not known");
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(reason::coordinator_unreached, std::strerror(errno));
  auto line = std::make_unique<peer_line>(fd);
  if (const int problem = connect_within(fd, *found, limit); problem != 0) {
    return fail(reason::coordinator_unreached, std::strerror(problem));
  }
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return line;
}

peer_line::~peer_line() { ::close(fd_); }

bool peer_line::say(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EAGAIN || !ready(fd_, POLLOUT, k_second)) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> peer_line::hear(duration_ns limit) {
  const time_ns until = monotonic_now() + limit;
  for (;;) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > k_peer_line_bytes_max) broken_ = true;
    if (broken_) return std::nullopt;
    const time_ns now = monotonic_now();
    if (now >= until || !ready(fd_, POLLIN, until - now + k_millisecond)) return std::nullopt;
    char block[4096];
    const ssize_t n = ::recv(fd_, block, sizeof block, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) broken_ = true;
    if (n > 0) unread_.append(block, static_cast<std::size_t>(n));
  }
}

bool peer_line::open() noexcept {
  if (broken_) return false;
  char byte = 0;
  const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

expected<std::unique_ptr<peer_listener>> peer_listener::open(const config::endpoint& at) {
  const addresses found = resolve(at, AI_PASSIVE);
  if (!found) {
    return fail(reason::config_invalid, "--answer", config::endpoint_text(at),
                "an address of this machine");
  }
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fd < 0 || ::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, 8) != 0) {
    const int problem = errno;
    if (fd >= 0) ::close(fd);
    if (problem == EADDRINUSE) return fail(reason::address_in_use, "doctor's");
    return fail(reason::config_invalid, "--answer", config::endpoint_text(at),
                fmt::format("an address that can be bound ({})", std::strerror(problem)));
  }
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes);
  const in_port_t port = bound.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                             : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  return std::unique_ptr<peer_listener>(new peer_listener(fd, {at.host, ntohs(port)}));
}

peer_listener::~peer_listener() { ::close(fd_); }

std::unique_ptr<peer_line> peer_listener::accept(duration_ns limit) {
  if (!ready(fd_, POLLIN, limit)) return nullptr;
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? nullptr : std::make_unique<peer_line>(fd);
}

}  // namespace moetier::doctor
