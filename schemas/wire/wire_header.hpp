#pragma once
// The data plane's header: 128 bytes, little endian, fixed offsets, in front of every message
// between a source and a worker. schemas/wire.capnp declares the same struct for documentation; a
// test asserts that its data section is this image byte for byte. Fields keep their meaning for
// ever; minor versions add flags and extensions only.
//
// offset 0   magic u32 "MOET", major u8, minor u8, header_bytes u16, check u64 (over all header
// bytes, itself as 0)
//        16  kind u8, flags u8 (a return: its status), return_mode u8, attempt u8, source u16,
//        worker u16 24  epoch u64, generation u64, resolution_id u64, plan_hash u64 56  step u64,
//        session u32, sender_incarnation u32 (low half) 72  layer u16, micro_batch u16, chunk u16,
//        chunk_count u16, repeat_idx u16, repeat_count u16, stamp u32 88  rows u32, row_bytes u32
//        (all payload strides), payload_bytes u64 104 payload_check u32 (CRC32C, 0 = off),
//        budget_us u32 (a return: ns that its rows were held, saturating), extension_bytes u32,
//        extension_tag u32, zero u64
// Thread: any.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace moetier {

enum class wire_kind : std::uint8_t {
  dispatch = 1,
  give_back = 2,
  credit = 3,
  probe = 4,
  abort = 5
};

struct wire_header {
  wire_kind kind = wire_kind::dispatch;
  std::uint8_t flags = 0;
  std::uint8_t return_mode = 0;
  std::uint8_t attempt = 0;
  std::uint16_t source = 0;
  std::uint16_t worker = 0;
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;
  std::uint64_t resolution_id = 0;
  std::uint64_t plan_hash = 0;
  std::uint64_t step = 0;
  std::uint32_t session = 0;
  std::uint32_t sender_incarnation = 0;
  std::uint16_t layer = 0;
  std::uint16_t micro_batch = 0;
  std::uint16_t chunk = 0;
  std::uint16_t chunk_count = 1;
  std::uint16_t repeat_idx = 0;
  std::uint16_t repeat_count = 1;
  std::uint32_t stamp = 0;
  std::uint32_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint32_t payload_check = 0;
  std::uint32_t budget_us = 0;
  std::uint32_t extension_bytes = 0;
  std::uint32_t extension_tag = 0;

  bool operator==(const wire_header&) const = default;
};

inline constexpr std::size_t k_wire_header_bytes = 128;
inline constexpr std::uint32_t k_wire_magic = 0x54454f4du;  // "MOET" read as little endian
inline constexpr std::uint8_t k_wire_major = 1;
inline constexpr std::uint8_t k_wire_minor = 0;
inline constexpr std::uint32_t k_wire_extension_bytes_max = 4096;

using wire_image = std::array<std::byte, k_wire_header_bytes>;

// The image with its check filled in (CRC32C, widened, over header and extension).
wire_image encode_header(const wire_header& header,
                         std::span<const std::byte> extension = {}) noexcept;

enum class wire_fault : std::uint8_t {
  none,
  short_frame,
  bad_magic,
  bad_major,
  bad_header_bytes,
  bad_check,
  bad_kind,
  bad_extension,
  bad_zero
};
std::string_view wire_fault_name(wire_fault fault) noexcept;

// Checks in the fixed order: length, magic, major, header_bytes, check, kind, extension. `frame` is
// header + extension. `out` is written only when the result is none.
wire_fault decode_header(std::span<const std::byte> frame, wire_header& out) noexcept;

}  // namespace moetier
