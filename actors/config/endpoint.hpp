#pragma once
// A place to listen or to connect to: "127.0.0.1:7400", "[::1]:7400", "localhost:7400". Only
// parsed here, never resolved. Thread: any (a value).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moetier::config {

struct endpoint {
  std::string host;
  std::uint16_t port = 0;  // 0 = any free one, for listening

  bool operator==(const endpoint&) const = default;
};

std::optional<endpoint> parse_endpoint(std::string_view text);
std::string endpoint_text(const endpoint& e);
// 127.0.0.0/8, ::1 or localhost, by text.
bool is_loopback(std::string_view host) noexcept;
// For worker@N the port N above, so that workers of one file do not meet; any other name, port 0 or
// a port past the last: as it is.
endpoint numbered(const endpoint& shared, std::string_view worker_name);

}  // namespace moetier::config
