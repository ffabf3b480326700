#pragma once
// A member's address as it travels in control messages: the carrier's tag, a check, and the bytes
// that its library made. Another carrier's, a truncated or a damaged address is refused before any
// library parses it. Thread: any.

#include <cstdint>
#include <span>

#include "schemas/base/error.hpp"
#include "transport/communication.hpp"

namespace moetier::transport {

enum class address_tag : std::uint32_t {
  in_process = 0x31504e49,     // "INP1"
  shared_memory = 0x314d4853,  // "SHM1"
  ucx = 0x31584355             // "UCX1"
};

// Requires: body.size() + 8 <= k_address_bytes_max.
member_address seal_address(address_tag tag, std::span<const std::byte> body);

// The body inside `address`.
expected<std::span<const std::byte>> open_address(address_tag tag, const member_address& address);

}  // namespace moetier::transport
