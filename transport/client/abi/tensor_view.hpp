#pragma once
// A DLPack tensor as the source half wants it: two dimensions, rows of contiguous elements at a
// pitch, in host memory or on a CUDA device. Checks all that a DLTensor may claim before a byte of
// it is touched. Thread: any.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dlpack/dlpack.h>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"

namespace moetier::abi {

// Where a tensor lies: on the CUDA device of that number, or
inline constexpr std::int32_t k_on_host = -1;
inline constexpr std::int32_t k_nowhere = -2;  // there is no tensor

struct tensor_view {
  std::byte* data = nullptr;  // an address on `device`
  dtype type = dtype::other;
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  std::size_t pitch = 0;  // bytes
  std::int32_t device = k_nowhere;

  bool given() const noexcept { return device != k_nowhere; }
  std::size_t row_bytes() const noexcept { return width * dtype_bytes(type); }
  std::byte* end() const noexcept {
    return rows == 0 ? data : data + (rows - 1) * pitch + row_bytes();
  }
};

// The tensor as [rows, width] of any element type we know. Without a tensor: no rows.
// reason::invalid_shape, invalid_dtype, invalid_argument, not_enabled (other memory) name it.
// `allowed` is what a sentence about an unknown element type offers.
expected<tensor_view> view_of(const char* name, const DLTensor* tensor, std::uint32_t width,
                              std::string_view allowed);

// The same, but with `rows` rows exactly.
expected<tensor_view> view_of(const char* name, const DLTensor* tensor, std::uint32_t rows,
                              std::uint32_t width, std::string_view allowed);

// One element a row: a [rows] tensor as a view of width 1.
expected<tensor_view> vector_of(const char* name, const DLTensor* tensor, std::uint32_t rows,
                                std::string_view allowed);

// All tensors of a call and of its result lie at one place, which the first of them names.
struct shared_place {
  const char* name = "";
  std::int32_t device = k_nowhere;

  expected<void> join(const char* joining, const tensor_view& view);
};

}  // namespace moetier::abi
