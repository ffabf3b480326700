#include "transport/client/abi/versioned_struct.hpp"

#include <algorithm>

namespace moetier::abi {

expected<std::uint32_t> check_struct(const char* name, const void* given, std::size_t known_bytes) {
  if (given == nullptr) return fail(reason::invalid_argument, name, "null", "a struct");
  std::uint32_t head[2];
  std::memcpy(head, given, sizeof head);
  const auto [size, version] = head;
  if (size < sizeof head || size > k_struct_bytes_max) {
    return fail(reason::invalid_argument, fmt::format("the size of {}", name), size,
                "sizeof the struct");
  }
  if (version != MOETIER_VERSION) {
    return fail(reason::protocol_version, fmt::format("{} of {}", version, name), MOETIER_VERSION);
  }
  if (size > known_bytes) {
    const auto* bytes = static_cast<const unsigned char*>(given);
    if (std::any_of(bytes + known_bytes, bytes + size, [](unsigned char b) { return b != 0; })) {
      return fail(reason::struct_unknown, name, known_bytes);
    }
  }
  return size;
}

}  // namespace moetier::abi
