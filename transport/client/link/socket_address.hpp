#pragma once
// "host:port" or "unix:PATH" as socket addresses, for the link that connects and the server that
// listens. A name is resolved once, by the caller's thread. Thread: any (a value).

#include <sys/socket.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::client {

struct socket_address {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&bytes); }
  std::uint16_t port() const noexcept;
  bool is_loopback() const noexcept;
  bool is_unix() const noexcept { return bytes.ss_family == AF_UNIX; }
};

inline constexpr std::string_view k_unix_prefix = "unix:";
inline constexpr std::size_t k_unix_path_bytes_max = 107;  // the system's

// The part of "host:port" that names the peer, without brackets; "" for a Unix socket.
std::string_view host_of(std::string_view address) noexcept;

// "127.0.0.1:7400", "[::1]:7400", "name:7400", "unix:PATH", at least one result.
// reason::invalid_argument for text that is none of them, named by `name`; coordinator_unreached
// when a name does not resolve.
expected<std::vector<socket_address>> parse_address(std::string_view name, std::string_view text);

}  // namespace moetier::client
