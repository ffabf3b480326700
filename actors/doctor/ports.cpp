#include "actors/doctor/ports.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace moetier::doctor {

port_facts probe_port(std::string setting, const config::endpoint& at) {
  port_facts f{std::move(setting), config::endpoint_text(at), at.port == 0, 0};
  if (f.free_one) return f;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(at.port);
  if (::getaddrinfo(at.host.c_str(), port.c_str(), &hints, &found) != 0 || found == nullptr) {
    f.bind_error = EADDRNOTAVAIL;
    return f;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    f.bind_error = errno;
    return f;
  }
  const int yes = 1;  // as the servers do: a port in TIME_WAIT is free
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, 1) != 0) {
    f.bind_error = errno;
  }
  ::close(fd);
  return f;
}

finding judge_port(const port_facts& f) {
  const std::string check = "port " + f.setting;
  if (f.free_one) return pass(check, f.address + ": any free port");
  if (f.bind_error == 0) return pass(check, f.address + " is free");
  const std::string seen = fmt::format("{}: {}", f.address, std::strerror(f.bind_error));
  if (f.bind_error == EADDRINUSE) {
    return failure(
        check, seen,
        fmt::format("end what listens there (ss -ltnp), or set {} to another port", f.setting));
  }
  if (f.bind_error == EACCES) {
    return failure(check, seen, fmt::format("set {} to a port above 1023", f.setting));
  }
  return failure(check, seen, fmt::format("set {} to an address of this machine", f.setting));
}

}  // namespace moetier::doctor
