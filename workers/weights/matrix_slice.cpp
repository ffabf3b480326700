#include "workers/weights/matrix_slice.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_staging_bytes = std::size_t{1} << 20;

// Stored rows to columns: 32 rows at a time, so that what is written fills cache lines.
template <std::size_t Bytes>
void transpose(std::span<const std::byte> from, std::uint64_t row_pitch, std::uint64_t rows,
               std::uint64_t step, std::uint64_t out, std::uint64_t into_pitch, std::byte* into) {
  constexpr std::uint64_t k_block = 32;
  for (std::uint64_t first = 0; first < rows; first += k_block) {
    const std::uint64_t end = std::min(first + k_block, rows);
    for (std::uint64_t o = 0; o < out; ++o) {
      const std::byte* const column = from.data() + o * step * Bytes;
      std::byte* const line = into + o * into_pitch * Bytes;
      for (std::uint64_t r = first; r < end; ++r)
        std::memcpy(line + r * Bytes, column + r * row_pitch, Bytes);
    }
  }
}

}  // namespace

expected<void> copy_slice(const tensor_place& from, const matrix_slice& slice,
                          std::size_t element_bytes, const matrix_extent& live,
                          const matrix_extent& full, std::span<std::byte> into) {
  MOETIER_ASSERT(live.out > 0 && live.out <= full.out && live.in > 0 && live.in <= full.in);
  MOETIER_ASSERT(into.size() == full.out * full.in * element_bytes);
  const std::uint64_t pitch = slice.columns * element_bytes;
  const std::uint64_t origin = slice.first_row * pitch + slice.first_column * element_bytes;
  const bool in_order = !slice.in_major && slice.step == 1 && slice.columns == live.in;
  if (in_order && live.in == full.in)
    return from.file->read_part(*from.tensor, origin,
                                into.first(live.out * live.in * element_bytes));

  // Stored rows are visited in turn: `row_bytes` of each from `origin`, one every `row_pitch`.
  const std::uint64_t rows = slice.in_major ? live.in : live.out;
  const std::uint64_t row_pitch = slice.in_major ? pitch : pitch * slice.step;
  const std::uint64_t row_bytes =
      (slice.in_major ? (live.out - 1) * slice.step + 1 : live.in) * element_bytes;
  const std::uint64_t rows_at_once = std::max<std::uint64_t>(
      1, row_bytes >= k_staging_bytes ? 1 : (k_staging_bytes - row_bytes) / row_pitch + 1);
  std::vector<std::byte> staging((std::min(rows, rows_at_once) - 1) * row_pitch + row_bytes);
  for (std::uint64_t first = 0; first < rows; first += rows_at_once) {
    const std::uint64_t count = std::min(rows_at_once, rows - first);
    const auto part = std::span(staging).first((count - 1) * row_pitch + row_bytes);
    if (auto done = from.file->read_part(*from.tensor, origin + first * row_pitch, part); !done)
      return done;
    if (slice.in_major) {
      std::byte* const columns = into.data() + first * element_bytes;
      const auto turn = element_bytes == 1   ? transpose<1>
                        : element_bytes == 2 ? transpose<2>
                                             : transpose<4>;
      turn(part, row_pitch, count, slice.step, live.out, full.in, columns);
      continue;
    }
    for (std::uint64_t r = 0; r < count; ++r)
      std::memcpy(into.data() + (first + r) * full.in * element_bytes, part.data() + r * row_pitch,
                  row_bytes);
  }
  return {};
}

}  // namespace moetier::workers
