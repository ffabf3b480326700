#pragma once
// Between control messages as values and the bytes an actor carries. Bytes = a small envelope
// header (magic, version, kind, fragment index and count, length, CRC32C) and one Cap'n Proto
// segment. A message larger than one envelope is cut into fragments; the other side's `assembler`
// puts them together, bounded in size, number and order. Nothing received is trusted: kind,
// lengths, counts and ids are checked before anything is allocated for them. Thread: any (an
// assembler: its owner).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/control/messages.hpp"

namespace moetier::control {

using frame = std::vector<std::uint8_t>;  // one envelope, <= k_envelope_bytes_max

inline constexpr std::size_t k_message_bytes_max = 64 * 1024 * 1024;  // all fragments together

// Requires: the message fits k_message_bytes_max (only a placement of a prepare can be that large).
std::vector<frame> encode(const message& m);

class assembler final {
 public:
  // A whole message when `f` completes one, nothing while fragments lack, reason::frame_malformed
  // for anything else (which also drops what was collected).
  expected<std::optional<message>> accept(std::span<const std::uint8_t> f);

 private:
  expected<std::optional<message>> take(std::span<const std::uint8_t> f);
  void drop();

  std::uint16_t kind_ = 0;
  std::uint16_t next_ = 0;   // fragment expected next
  std::uint16_t count_ = 0;  // fragments of the message being collected
  std::uint32_t message_bytes_ = 0;
  std::uint32_t message_check_ = 0;
  std::vector<std::uint8_t> body_;
};

}  // namespace moetier::control
