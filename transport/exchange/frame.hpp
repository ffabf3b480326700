#pragma once
// A frame as both tables see it: the exchange key in a wire header and back, and the checks of a
// received header that need no table. Thread: any.

#include <cstddef>
#include <cstdint>

#include "schemas/wire/wire_header.hpp"
#include "transport/communication.hpp"
#include "transport/exchange/bank_memory.hpp"

namespace moetier::transport {

// The key's fields of a header; `flags` are copied as they are.
wire_header header_of(const exchange_key& key) noexcept;
exchange_key key_of(const wire_header& header) noexcept;

// Encodes the header into the bank's, where a link sends it from.
void write_head(const wire_header& header, bank_memory& memory, std::uint32_t bank) noexcept;

// Incarnations travel by their low half; the attach table holds all 64 bits.
constexpr std::uint32_t low_half(incarnation_id incarnation) noexcept {
  return static_cast<std::uint32_t>(incarnation.value);
}

// Whether a return's header names the exchange that `key` opened. A status other than ok says its
// own generation (the newest one held), so that field is compared in good returns alone.
bool answers(const wire_header& header, const exchange_key& key) noexcept;

// The status in a return's flags; a number outside the list is a worker's bug.
status status_in(const wire_header& header) noexcept;

enum class size_fault : std::uint8_t { none, rows, row_bytes, payload_bytes };

// Sizes in the fixed order: rows within the limit, row_bytes the group's, payload_bytes = rows *
// row_bytes, and that many bytes came.
size_fault check_sizes(const wire_header& header, std::uint32_t rows_max, std::uint32_t row_bytes,
                       std::size_t payload_bytes_seen) noexcept;

// Whether stamp a is newer than b. Stamps wrap around; an unread one is at most a few uses old.
constexpr bool is_newer(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace moetier::transport
