#include "transport/exchange/sealed_address.hpp"

#include <cstring>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"

namespace moetier::transport {
namespace {

constexpr std::size_t k_seal_bytes = 8;  // tag, CRC32C of tag and body

std::uint32_t check_of(std::uint32_t tag, std::span<const std::byte> body) noexcept {
  return crc32c(body, crc32c(std::as_bytes(std::span(&tag, 1))));
}

}  // namespace

member_address seal_address(address_tag tag, std::span<const std::byte> body) {
  MOETIER_ASSERT(body.size() + k_seal_bytes <= k_address_bytes_max);
  const auto number = static_cast<std::uint32_t>(tag);
  const std::uint32_t check = check_of(number, body);
  member_address address(k_seal_bytes + body.size());
  std::memcpy(address.data(), &number, 4);
  std::memcpy(address.data() + 4, &check, 4);
  std::memcpy(address.data() + k_seal_bytes, body.data(), body.size());
  return address;
}

expected<std::span<const std::byte>> open_address(address_tag tag, const member_address& address) {
  if (address.size() <= k_seal_bytes || address.size() > k_address_bytes_max)
    return fail(reason::invalid_argument, "the length of a member's address", address.size(),
                fmt::format("{} to {}", k_seal_bytes + 1, k_address_bytes_max));
  std::uint32_t number = 0;
  std::uint32_t check = 0;
  std::memcpy(&number, address.data(), 4);
  std::memcpy(&check, address.data() + 4, 4);
  const auto body = std::span(address).subspan(k_seal_bytes);
  if (number != static_cast<std::uint32_t>(tag))
    return fail(reason::frame_malformed, "a member's address is of another carrier");
  if (check != check_of(number, body))
    return fail(reason::frame_malformed, "a member's address fails its check");
  return body;
}

}  // namespace moetier::transport
