#pragma once
// Where one matrix [out, in] lies inside a stored tensor, seen as rows of `columns` elements, and
// how it is copied out: transposed, every second row, a part of the columns, as packed and shared
// tensors ask. Only the bytes needed are read, through one bounded staging buffer where they are
// not already in order. Thread: any.

#include <cstddef>
#include <cstdint>
#include <span>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/shard_set.hpp"

namespace moetier::workers {

struct matrix_slice {
  std::uint64_t first_row = 0;  // stored row of out 0 (of in 0 where in_major)
  std::uint64_t first_column = 0;
  std::uint64_t columns = 0;  // of a stored row
  std::uint64_t step = 1;     // stored rows (columns where in_major) from one `out` to the next
  bool in_major = false;      // stored rows run over `in`
};

struct matrix_extent {
  std::uint64_t out = 0;
  std::uint64_t in = 0;  // elements
  bool operator==(const matrix_extent&) const = default;
};

// Copies the first `live` of a matrix to the start of `into` [full.out, full.in] of elements of
// `element_bytes` (1, 2 or 4); the rest of `into` keeps what it holds.
// Requires: live fits in full, the slice in the tensor, into.size() == full.out * full.in *
// element_bytes.
expected<void> copy_slice(const tensor_place& from, const matrix_slice& slice,
                          std::size_t element_bytes, const matrix_extent& live,
                          const matrix_extent& full, std::span<std::byte> into);

}  // namespace moetier::workers
