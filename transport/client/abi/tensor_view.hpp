#pragma once
// A DLPack tensor as the source half wants it: host memory, two dimensions, rows of contiguous
// elements at a pitch. Checks all that a DLTensor may claim before a byte of it is touched.
// Thread: any.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dlpack/dlpack.h>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"

namespace moetier::abi {

struct tensor_view {
  std::byte* data = nullptr;
  dtype type = dtype::other;
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  std::size_t pitch = 0;  // bytes

  std::byte* end() const noexcept {
    return rows == 0 ? data : data + (rows - 1) * pitch + width * dtype_bytes(type);
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

}  // namespace moetier::abi
