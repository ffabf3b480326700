#pragma once
// How one call lies in the two blocks that travel between host and device: what goes in (how many
// rows are live, the status word, pages, slot ids, weights, rows) and what comes out. Every place
// is a function of the call's bucket, so that a recorded launch finds it again. Pure.
// Thread: any.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace moetier::workers {

constexpr std::size_t padded(std::size_t bytes, std::size_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

// Rows of a call are rounded up to a power of two, so that few different launches serve all sizes.
// Requires: 1 <= rows <= rows_cap.
constexpr std::uint32_t bucket_of(std::uint32_t rows, std::uint32_t rows_cap) noexcept {
  return std::min(std::bit_ceil(rows), rows_cap);
}

// What chooses the kernel's variant, as coarse as the buckets. Requires: active <= entries.
constexpr std::uint32_t rows_per_slot_of(std::size_t entries, std::size_t active) noexcept {
  if (active == 0) return 0;
  return std::bit_ceil(static_cast<std::uint32_t>((entries + active - 1) / active));
}

struct call_layout {
  std::size_t live = 0;    // uint32: rows that are live
  std::size_t status = 0;  // uint32: device_failure, 0 before
  std::size_t pages = 0;   // address of each slot's page
  std::size_t slot_ids = 0;
  std::size_t weights = 0;
  std::size_t rows = 0;
  std::size_t row_pitch = 0;  // of rows in and out, f32

  bool operator==(const call_layout&) const = default;
};

constexpr call_layout call_layout_of(std::uint32_t hidden_size, std::uint32_t rows_cap,
                                     std::uint32_t k_in, std::uint32_t slots) noexcept {
  call_layout l;
  l.live = 0;
  l.status = sizeof(std::uint32_t);
  l.pages = 64;
  l.slot_ids = padded(l.pages + std::size_t{slots} * sizeof(void*), 64);
  const std::size_t entries = std::size_t{rows_cap} * k_in;
  l.weights = padded(l.slot_ids + entries * sizeof(std::int32_t), 64);
  l.rows = padded(l.weights + entries * sizeof(float), 256);
  l.row_pitch = padded(std::size_t{hidden_size} * sizeof(float), 16);
  return l;
}

// Bytes of the block that goes in, with `rows` rows.
constexpr std::size_t in_bytes(const call_layout& l, std::uint32_t rows) noexcept {
  return l.rows + rows * l.row_pitch;
}

}  // namespace moetier::workers
