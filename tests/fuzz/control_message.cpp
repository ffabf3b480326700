// Cap'n Proto segments of control messages, past the envelope's checks: the first byte is the kind.

#include "schemas/control/message_body.hpp"

#include <cstring>

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/schemas/message_author.hpp"

namespace moetier::fuzz {

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const auto kind =
      static_cast<std::uint16_t>(1 + bytes[0] % std::variant_size_v<control::message>);
  std::vector<std::uint64_t> words((bytes.size() - 1) / 8);  // as aligned as a message
  if (words.empty()) return;
  std::memcpy(words.data(), bytes.data() + 1, words.size() * 8);
  const std::span<const std::uint8_t> segment(reinterpret_cast<const std::uint8_t*>(words.data()),
                                              words.size() * 8);
  const auto read = control::from_segment(kind, segment);
  if (!read) return;
  check(read->index() + 1 == kind, "a message is of another kind than it says");
  const auto again = control::from_segment(kind, control::to_segment(*read));
  check(again && *again == *read, "a message changes when it is written and read again");
}

std::vector<input> seeds() {
  std::vector<input> all;
  control::author author(5);
  for (std::size_t i = 0; i < 3 * std::variant_size_v<control::message>; ++i) {
    const std::size_t kind = i % std::variant_size_v<control::message>;
    const auto segment = control::to_segment(author.make(kind));
    if (segment.size() > 8 * 1024) continue;
    input seed{static_cast<std::uint8_t>(kind)};
    seed.insert(seed.end(), segment.begin(), segment.end());
    all.push_back(std::move(seed));
  }
  return all;
}

}  // namespace moetier::fuzz
