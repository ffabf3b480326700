// The data plane's header: bytes of any peer on the wire, with and without a check that fits.

#include "schemas/wire/wire_header.hpp"

#include <cstring>

#include "schemas/base/checksum.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "transport/exchange/frame.hpp"
#include "transport/exchange/sealed_address.hpp"

namespace moetier::fuzz {
namespace {

constexpr std::size_t k_check_at = 8;

// Makes the frame pass its own check, so that what lies behind the check is looked at.
void seal(std::vector<std::byte>& frame) {
  std::memset(frame.data() + k_check_at, 0, 8);
  const std::uint64_t check = crc32c(frame);
  std::memcpy(frame.data() + k_check_at, &check, 8);
}

void read_frame(std::span<const std::byte> frame) {
  wire_header header;
  if (decode_header(frame, header) != wire_fault::none) return;
  const auto extension = frame.subspan(k_wire_header_bytes);
  const wire_image image = encode_header(header, extension);
  std::vector<std::byte> again(image.begin(), image.end());
  again.insert(again.end(), extension.begin(), extension.end());
  wire_header read_again;
  check(decode_header(again, read_again) == wire_fault::none && read_again == header,
        "a header changes when it is written and read again");
  const auto key = transport::key_of(header);
  check(transport::answers(header, key) || header.kind != wire_kind::give_back,
        "a return does not answer its own key");
  transport::status_in(header);
  if (transport::check_sizes(header, 4096, 512, header.payload_bytes) ==
      transport::size_fault::none) {
    check(header.rows <= 4096 && header.payload_bytes == std::uint64_t{header.rows} * 512,
          "sizes that do not fit passed");
  }
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const auto body = std::as_bytes(bytes.subspan(1));
  std::vector<std::byte> frame(body.begin(), body.end());
  if ((bytes[0] & 1) != 0 && frame.size() >= k_wire_header_bytes) seal(frame);
  read_frame(frame);
  transport::member_address address{frame.begin(), frame.end()};
  const auto opened = transport::open_address(transport::address_tag::ucx, address);
  if (opened) {
    check(transport::seal_address(transport::address_tag::ucx, *opened) == address,
          "an address changes when it is opened and sealed again");
  }
}

std::vector<input> seeds() {
  std::vector<input> all;
  const auto add = [&](std::span<const std::byte> bytes) {
    input seed(1 + bytes.size(), 1);
    if (!bytes.empty()) std::memcpy(seed.data() + 1, bytes.data(), bytes.size());
    all.push_back(std::move(seed));
  };
  for (const wire_kind kind : {wire_kind::dispatch, wire_kind::give_back, wire_kind::credit,
                               wire_kind::probe, wire_kind::abort}) {
    wire_header header;
    header.kind = kind;
    header.rows = 3;
    header.row_bytes = 512;
    header.payload_bytes = 3 * 512;
    add(encode_header(header));
  }
  wire_header extended;
  const std::vector<std::byte> extension(24, std::byte{9});
  extended.extension_bytes = 24;
  extended.extension_tag = 7;
  const wire_image head = encode_header(extended, extension);
  std::vector<std::byte> frame(head.begin(), head.end());
  frame.insert(frame.end(), extension.begin(), extension.end());
  add(frame);
  add(transport::seal_address(transport::address_tag::ucx, extension));
  return all;
}

}  // namespace moetier::fuzz
