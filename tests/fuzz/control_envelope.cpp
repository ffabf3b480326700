// Actor envelopes: frames of a peer, in any number and order, into one assembler. A frame is a byte
// of wishes (1: make its check fit; 2: the message's too), two bytes of length, and so many bytes.

#include <cstring>

#include "schemas/base/checksum.hpp"
#include "schemas/control/codec.hpp"
#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/schemas/message_author.hpp"

namespace moetier::fuzz {
namespace {

// Of the envelope's header, schemas/control.capnp.
constexpr std::size_t k_header_bytes = 32;
constexpr std::size_t k_message_check_at = 20;
constexpr std::size_t k_check_at = 24;

void put(control::frame& frame, std::size_t at, std::uint32_t value) {
  std::memcpy(frame.data() + at, &value, 4);
}

void seal(control::frame& frame, bool whole_message) {
  const auto bytes = std::as_bytes(std::span(frame));
  if (whole_message) put(frame, k_message_check_at, crc32c(bytes.subspan(k_header_bytes)));
  put(frame, k_check_at, 0);
  put(frame, k_check_at, crc32c(bytes));
}

void check_trip(const control::message& m) {
  control::assembler to;
  for (const control::frame& frame : control::encode(m)) {
    const auto got = to.accept(frame);
    check(got.has_value(), "a message that was read cannot be sent");
    if (got->has_value()) return check(**got == m, "a message changes on its way");
  }
  check(false, "a message never arrives");
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  byte_source from(bytes);
  control::assembler to;
  while (!from.empty()) {
    const std::uint8_t wishes = from.u8();
    const auto piece = from.take(from.u16());
    control::frame frame(piece.begin(), piece.end());
    if ((wishes & 1) != 0 && frame.size() >= k_header_bytes) seal(frame, (wishes & 2) != 0);
    const auto got = to.accept(frame);
    if (got && got->has_value()) check_trip(**got);
  }
}

std::vector<input> seeds() {
  std::vector<input> all;
  control::author author(3);
  for (std::size_t kind = 0; kind < std::variant_size_v<control::message>; ++kind) {
    input seed;
    for (const control::frame& frame : control::encode(author.make(kind))) {
      const bool alone = frame.size() < 60 * 1024;
      seed.insert(seed.end(), {static_cast<std::uint8_t>(alone ? 3 : 1),
                               static_cast<std::uint8_t>(frame.size()),
                               static_cast<std::uint8_t>(frame.size() >> 8)});
      seed.insert(seed.end(), frame.begin(), frame.end());
    }
    if (seed.size() <= 64 * 1024) all.push_back(std::move(seed));
  }
  return all;
}

}  // namespace moetier::fuzz
