#pragma once
// What a source_shape means in bytes, and which shapes are legal. Both halves size their banks by
// these functions, so they cannot disagree. Thread: any.

#include <cstddef>
#include <cstdint>

#include "schemas/base/error.hpp"
#include "transport/communication.hpp"

namespace moetier::transport {

// One dispatched row: its hidden bytes and its record, both at their strides.
constexpr std::uint32_t row_bytes_of(const source_shape& shape) noexcept {
  return shape.hidden_stride + static_cast<std::uint32_t>(record_stride(shape.top_k));
}

constexpr std::size_t dispatch_bytes_max(const source_shape& shape) noexcept {
  return std::size_t{shape.rows_max} * row_bytes_of(shape);
}

constexpr std::size_t return_bytes_max(const source_shape& shape) noexcept {
  return std::size_t{shape.return_rows_max} * shape.return_stride;
}

expected<void> check_shape(const source_shape& shape);

}  // namespace moetier::transport
