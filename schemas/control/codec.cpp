#include "schemas/control/codec.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/control/message_body.hpp"

namespace moetier::control {
namespace {

constexpr std::uint32_t k_magic = 0x4543544du;  // "MTCE"
constexpr std::uint16_t k_version = 1;
constexpr std::size_t k_header_bytes = 32;
constexpr std::size_t k_fragment_bytes = 60 * 1024;
static_assert(k_header_bytes + k_fragment_bytes <= k_envelope_bytes_max);

// The envelope's 32 bytes; schemas/control.capnp has the table.
struct envelope {
  std::uint32_t magic = k_magic;
  std::uint16_t version = k_version;
  std::uint16_t kind = 0;
  std::uint16_t fragment = 0;
  std::uint16_t count = 0;
  std::uint32_t fragment_bytes = 0;
  std::uint32_t message_bytes = 0;
  std::uint32_t message_check = 0;
  std::uint32_t check = 0;
  std::uint32_t zero = 0;
};
static_assert(sizeof(envelope) == k_header_bytes);
static_assert(std::endian::native == std::endian::little);

std::uint32_t crc(std::span<const std::uint8_t> bytes, std::uint32_t seed = 0) {
  return crc32c(std::as_bytes(bytes), seed);
}

std::uint32_t check_of(envelope head, std::span<const std::uint8_t> fragment) {
  head.check = 0;
  return crc(fragment, crc32c(std::as_bytes(std::span(&head, 1))));
}

std::size_t fragments_of(std::size_t message_bytes) {
  return (message_bytes + k_fragment_bytes - 1) / k_fragment_bytes;
}

// Bytes of fragment `index` of a message: all but the last are full.
std::size_t fragment_bytes_of(std::size_t message_bytes, std::size_t index) {
  return std::min(k_fragment_bytes, message_bytes - index * k_fragment_bytes);
}

}  // namespace

std::vector<frame> encode(const message& m) {
  const std::vector<std::uint8_t> body = to_segment(m);
  MOETIER_ASSERT(!body.empty() && body.size() <= k_message_bytes_max);
  envelope head;
  head.kind = static_cast<std::uint16_t>(m.index() + 1);
  head.count = static_cast<std::uint16_t>(fragments_of(body.size()));
  head.message_bytes = static_cast<std::uint32_t>(body.size());
  head.message_check = crc(body);
  std::vector<frame> frames;
  frames.reserve(head.count);
  for (std::size_t i = 0; i < head.count; ++i) {
    const auto piece =
        std::span(body).subspan(i * k_fragment_bytes, fragment_bytes_of(body.size(), i));
    head.fragment = static_cast<std::uint16_t>(i);
    head.fragment_bytes = static_cast<std::uint32_t>(piece.size());
    head.check = check_of(head, piece);
    frame& f = frames.emplace_back(k_header_bytes + piece.size());
    std::memcpy(f.data(), &head, k_header_bytes);
    std::memcpy(f.data() + k_header_bytes, piece.data(), piece.size());
  }
  return frames;
}

expected<std::optional<message>> assembler::accept(std::span<const std::uint8_t> f) {
  auto result = take(f);
  if (!result) drop();
  return result;
}

void assembler::drop() {
  next_ = 0;
  body_ = {};
}

expected<std::optional<message>> assembler::take(std::span<const std::uint8_t> f) {
  envelope head;
  if (f.size() < k_header_bytes || f.size() > k_envelope_bytes_max) {
    return fail(reason::frame_malformed, "envelope length");
  }
  std::memcpy(&head, f.data(), k_header_bytes);
  const auto piece = f.subspan(k_header_bytes);
  if (head.magic != k_magic) return fail(reason::frame_malformed, "magic");
  if (head.version != k_version) return fail(reason::protocol_version, head.version, k_version);
  if (head.check != check_of(head, piece)) return fail(reason::frame_malformed, "check");
  // From here on only a faulty or hostile peer can fail.
  if (head.zero != 0) return fail(reason::frame_malformed, "reserved");
  if (head.kind < 1 || head.kind > std::variant_size_v<message>) {
    return fail(reason::frame_malformed, "kind");
  }
  const std::size_t total = head.message_bytes;
  if (total == 0 || total > k_message_bytes_max || total % 8 != 0 ||
      head.count != fragments_of(total) || head.fragment >= head.count ||
      head.fragment_bytes != piece.size() ||
      piece.size() != fragment_bytes_of(total, head.fragment)) {
    return fail(reason::frame_malformed, "lengths");
  }
  if (head.fragment == 0) {  // a new message; a half one before it was lost with its link
    drop();
    kind_ = head.kind;
    count_ = head.count;
    message_bytes_ = head.message_bytes;
    message_check_ = head.message_check;
  }
  if (head.fragment != next_ || head.kind != kind_ || head.count != count_ ||
      head.message_bytes != message_bytes_ || head.message_check != message_check_) {
    return fail(reason::frame_malformed, "order of fragments");
  }
  body_.insert(body_.end(), piece.begin(),
               piece.end());  // grows with what came, not what is claimed
  if (++next_ < count_) return std::optional<message>();
  const std::vector<std::uint8_t> body = std::exchange(body_, {});
  next_ = 0;
  MOETIER_ASSERT(body.size() == message_bytes_);
  if (crc(body) != message_check_) return fail(reason::frame_malformed, "message check");
  auto m = from_segment(kind_, body);
  if (!m) return unexpected_error(std::move(m.error()));
  return std::optional<message>(std::move(*m));
}

}  // namespace moetier::control
