#include "workers/weights/matrix_slice.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

constexpr std::size_t k_staging_bytes = std::size_t{1} << 20;

template <std::size_t Bytes>
void scatter(const std::byte* from, std::uint64_t step, std::uint64_t out, std::uint64_t pitch,
             std::byte* into) {
  for (std::uint64_t o = 0; o < out; ++o)
    std::memcpy(into + o * pitch * Bytes, from + o * step * Bytes, Bytes);
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
    for (std::uint64_t r = 0; r < count; ++r) {
      const std::byte* const row = part.data() + r * row_pitch;
      if (!slice.in_major) {
        std::memcpy(into.data() + (first + r) * full.in * element_bytes, row, row_bytes);
        continue;
      }
      std::byte* const column = into.data() + (first + r) * element_bytes;
      if (element_bytes == 1) scatter<1>(row, slice.step, live.out, full.in, column);
      if (element_bytes == 2) scatter<2>(row, slice.step, live.out, full.in, column);
      if (element_bytes == 4) scatter<4>(row, slice.step, live.out, full.in, column);
    }
  }
  return {};
}

}  // namespace moetier::workers
