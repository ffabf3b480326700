#pragma once
// What peer_process_test and the worker it starts agree on: identities, a shape, and addresses as
// lines of text. Thread: any.

#include <cstdint>
#include <string>

#include "transport/communication.hpp"

namespace moetier::transport {

inline constexpr worker_identity k_peer_worker{worker_id{1}, incarnation_id{0xbbbb}};
inline constexpr source_identity k_peer_source{source_id{1}, session_id{1}, incarnation_id{0xaaaa}};
inline constexpr source_shape k_peer_shape{.rows_max = 4096,
                                           .hidden_stride = 28 * 1024,
                                           .top_k = 8,
                                           .return_stride = 28 * 1024,
                                           .return_rows_max = 4096,
                                           .banks = 3};

inline std::string to_hex(const member_address& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += digits[static_cast<unsigned>(b) >> 4];
    text += digits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

inline member_address from_hex(const std::string& text) {
  const auto digit = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  member_address bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
  return bytes;
}

}  // namespace moetier::transport
