#include "actors/config/endpoint.hpp"

#include <fmt/core.h>

#include "actors/config/quantity.hpp"

namespace moetier::config {

std::optional<endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const auto port = parse_count(text.substr(colon + 1));
  if (!port || *port > 65535) return std::nullopt;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos) return std::nullopt;
  if (host.find_first_of(" \t[]/,") != std::string_view::npos) return std::nullopt;
  return endpoint{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string endpoint_text(const endpoint& e) {
  if (e.host.find(':') != std::string::npos) return fmt::format("[{}]:{}", e.host, e.port);
  return fmt::format("{}:{}", e.host, e.port);
}

bool is_loopback(std::string_view host) noexcept {
  if (host == "localhost" || host == "::1") return true;
  // Digits and dots only: "127.evil.example" is a name, not an address.
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

endpoint numbered(const endpoint& shared, std::string_view worker_name) {
  endpoint own = shared;
  const std::size_t at = worker_name.rfind('@');
  if (shared.port == 0 || at == std::string_view::npos) return own;
  const auto number = parse_count(worker_name.substr(at + 1));
  if (number && *number <= 65535U - shared.port) {
    own.port = static_cast<std::uint16_t>(shared.port + *number);
  }
  return own;
}

}  // namespace moetier::config
