#pragma once
// One tensor as a safetensors header tells of it: name, element type, shape, place in the data.
// A value; made and checked by the header reader. Thread: any.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "schemas/base/dtype.hpp"
#include "schemas/safetensors/limits.hpp"

namespace moetier {

// An element type of the format. Those that the tier does not compute with have dtype::other.
struct tensor_type {
  std::string_view name;  // as in the file: "BF16"
  std::uint8_t bits = 0;  // of one element
  dtype element = dtype::other;
};

// The type named so in a header, or nullptr.
const tensor_type* find_tensor_type(std::string_view name) noexcept;
// The type of our own element type. Requires: element is not dtype::other.
const tensor_type& tensor_type_of(dtype element) noexcept;

struct tensor_info {
  std::string name;
  const tensor_type* type = nullptr;
  std::uint32_t rank = 0;
  std::array<std::uint64_t, k_tensor_rank_max> sizes{};  // the first `rank` count
  std::uint64_t begin = 0;                               // bytes from the start of the data
  std::uint64_t end = 0;

  std::span<const std::uint64_t> shape() const noexcept { return std::span(sizes).first(rank); }
  std::uint64_t bytes() const noexcept { return end - begin; }
};

// "BF16 [64, 256]": how sentences show type and shape.
std::string shape_text(const tensor_type& type, std::span<const std::uint64_t> shape);

}  // namespace moetier
