#include "transport/client/link/socket_address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>
#include <string>

namespace moetier::client {

std::uint16_t socket_address::port() const noexcept {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (bytes.ss_family == AF_INET) {
    std::memcpy(&v4, &bytes, sizeof v4);
    return ntohs(v4.sin_port);
  }
  if (bytes.ss_family == AF_INET6) {
    std::memcpy(&v6, &bytes, sizeof v6);
    return ntohs(v6.sin6_port);
  }
  return 0;
}

bool socket_address::is_loopback() const noexcept {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (bytes.ss_family == AF_INET) {
    std::memcpy(&v4, &bytes, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (bytes.ss_family == AF_INET6) {
    std::memcpy(&v6, &bytes, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
  }
  return false;
}

namespace {

expected<std::vector<socket_address>> unix_address(std::string_view name, std::string_view text) {
  const std::string_view path = text.substr(k_unix_prefix.size());
  if (path.empty() || path.size() > k_unix_path_bytes_max ||
      path.find('\0') != std::string_view::npos) {
    return fail(reason::invalid_argument, name, text, "unix:PATH with a path of 1 to 107 bytes");
  }
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());
  socket_address address;
  std::memcpy(&address.bytes, &at, sizeof at);
  address.length = sizeof at;
  return std::vector{address};
}

}  // namespace

std::string_view host_of(std::string_view address) noexcept {
  if (address.starts_with(k_unix_prefix)) return {};
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

expected<std::vector<socket_address>> parse_address(std::string_view name, std::string_view text) {
  if (text.starts_with(k_unix_prefix)) return unix_address(name, text);
  constexpr std::string_view k_allowed = "host:port with a port of 0 to 65535, or unix:PATH";
  const auto refuse = [&] { return fail(reason::invalid_argument, name, text, k_allowed); };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > 256) return refuse();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (bad != std::errc() || end != digits.data() + digits.size()) return refuse();
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse();
  }

  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(std::string(host).c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail(reason::coordinator_unreached, "the name does not resolve");
  }
  std::vector<socket_address> addresses;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    socket_address address;
    std::memcpy(&address.bytes, a->ai_addr, a->ai_addrlen);
    address.length = a->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

}  // namespace moetier::client
