#pragma once
// Messages between cores as the codec lets them pass. What a core says must travel; what a peer
// says reaches a core only if it can. Thread: any.

#include <optional>
#include <utility>

#include "schemas/control/message_body.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {

// As the other side reads it; nothing if it refuses.
inline std::optional<control::message> travelled(const control::message& m) {
  const auto kind = static_cast<std::uint16_t>(m.index() + 1);
  auto read = control::from_segment(kind, control::to_segment(m));
  if (!read) return std::nullopt;
  return std::move(*read);
}

inline void check_wire_legal(const control::message& m) {
  const auto read = travelled(m);
  check(read && read->index() == m.index(), "a core says what no peer can read");
}

}  // namespace moetier::fuzz
