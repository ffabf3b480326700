#include "schemas/wire/wire_header.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"

namespace moetier {
namespace {

static_assert(std::endian::native == std::endian::little, "the image is copied field by field");

constexpr std::size_t k_magic_at = 0;
constexpr std::size_t k_major_at = 4;
constexpr std::size_t k_minor_at = 5;
constexpr std::size_t k_header_bytes_at = 6;
constexpr std::size_t k_check_at = 8;
constexpr std::size_t k_kind_at = 16;
constexpr std::size_t k_zero_at = 120;
constexpr std::uint32_t k_tag_must_be_understood = 0x80000000u;

template <class T>
void put(std::span<std::byte> image, std::size_t offset, T value) noexcept {
  std::memcpy(image.data() + offset, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> image, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

// The one list of the fields that are copied as they are; encode and decode both walk it.
template <class Header, class Visit>
void for_each_field(Header& h, Visit visit) {
  visit(17, h.flags);
  visit(18, h.return_mode);
  visit(19, h.attempt);
  visit(20, h.source);
  visit(22, h.worker);
  visit(24, h.epoch);
  visit(32, h.generation);
  visit(40, h.resolution_id);
  visit(48, h.plan_hash);
  visit(56, h.step);
  visit(64, h.session);
  visit(68, h.sender_incarnation);
  visit(72, h.layer);
  visit(74, h.micro_batch);
  visit(76, h.chunk);
  visit(78, h.chunk_count);
  visit(80, h.repeat_idx);
  visit(82, h.repeat_count);
  visit(84, h.stamp);
  visit(88, h.rows);
  visit(92, h.row_bytes);
  visit(96, h.payload_bytes);
  visit(104, h.payload_check);
  visit(108, h.budget_us);
  visit(112, h.extension_bytes);
  visit(116, h.extension_tag);
}

// CRC32C over header and extension with the check's own eight bytes read as zeros.
std::uint64_t check_of(std::span<const std::byte> head,
                       std::span<const std::byte> extension) noexcept {
  constexpr std::array<std::byte, 8> zeros{};
  std::uint32_t crc = crc32c(head.first(k_check_at));
  crc = crc32c(zeros, crc);
  crc = crc32c(head.subspan(k_check_at + zeros.size()), crc);
  return crc32c(extension, crc);
}

bool is_kind(std::uint8_t kind) noexcept {
  return kind >= static_cast<std::uint8_t>(wire_kind::dispatch) &&
         kind <= static_cast<std::uint8_t>(wire_kind::abort);
}

}  // namespace

wire_image encode_header(const wire_header& header, std::span<const std::byte> extension) noexcept {
  MOETIER_ASSERT(extension.size() <= k_wire_extension_bytes_max);
  MOETIER_ASSERT(header.extension_bytes == extension.size());
  wire_image image{};
  put(image, k_magic_at, k_wire_magic);
  put(image, k_major_at, k_wire_major);
  put(image, k_minor_at, k_wire_minor);
  put(image, k_header_bytes_at, static_cast<std::uint16_t>(k_wire_header_bytes + extension.size()));
  put(image, k_kind_at, header.kind);
  for_each_field(header, [&](std::size_t offset, auto value) { put(image, offset, value); });
  put(image, k_check_at, check_of(image, extension));
  return image;
}

std::string_view wire_fault_name(wire_fault fault) noexcept {
  switch (fault) {
    case wire_fault::none: return "none";
    case wire_fault::short_frame: return "short_frame";
    case wire_fault::bad_magic: return "bad_magic";
    case wire_fault::bad_major: return "bad_major";
    case wire_fault::bad_header_bytes: return "bad_header_bytes";
    case wire_fault::bad_check: return "bad_check";
    case wire_fault::bad_kind: return "bad_kind";
    case wire_fault::bad_extension: return "bad_extension";
    case wire_fault::bad_zero: return "bad_zero";
  }
  return "unknown";
}

wire_fault decode_header(std::span<const std::byte> frame, wire_header& out) noexcept {
  if (frame.size() < k_wire_header_bytes) return wire_fault::short_frame;
  const auto head = frame.first(k_wire_header_bytes);
  const auto extension = frame.subspan(k_wire_header_bytes);
  if (get<std::uint32_t>(head, k_magic_at) != k_wire_magic) return wire_fault::bad_magic;
  if (get<std::uint8_t>(head, k_major_at) != k_wire_major) return wire_fault::bad_major;
  if (extension.size() > k_wire_extension_bytes_max ||
      get<std::uint16_t>(head, k_header_bytes_at) != frame.size())
    return wire_fault::bad_header_bytes;
  if (get<std::uint64_t>(head, k_check_at) != check_of(head, extension))
    return wire_fault::bad_check;
  const auto kind = get<std::uint8_t>(head, k_kind_at);
  if (!is_kind(kind)) return wire_fault::bad_kind;

  wire_header header;
  header.kind = static_cast<wire_kind>(kind);
  for_each_field(header, [&](std::size_t offset, auto& field) {
    field = get<std::remove_reference_t<decltype(field)>>(head, offset);
  });
  // No tag with the top bit is known yet, so each such extension is one we cannot honour.
  if (header.extension_bytes != extension.size() ||
      (header.extension_tag & k_tag_must_be_understood) != 0)
    return wire_fault::bad_extension;
  if (get<std::uint64_t>(head, k_zero_at) != 0) return wire_fault::bad_zero;
  out = header;
  return wire_fault::none;
}

}  // namespace moetier
