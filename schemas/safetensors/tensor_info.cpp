#include "schemas/safetensors/tensor_info.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "schemas/base/assert.hpp"

namespace moetier {
namespace {

constexpr std::array k_types{
    tensor_type{"BOOL", 8},
    tensor_type{"F4", 4},
    tensor_type{"F6_E2M3", 6},
    tensor_type{"F6_E3M2", 6},
    tensor_type{"U8", 8, dtype::u8},
    tensor_type{"I8", 8},
    tensor_type{"F8_E5M2", 8},
    tensor_type{"F8_E4M3", 8},
    tensor_type{"F8_E8M0", 8},
    tensor_type{"I16", 16},
    tensor_type{"U16", 16},
    tensor_type{"F16", 16, dtype::f16},
    tensor_type{"BF16", 16, dtype::bf16},
    tensor_type{"I32", 32, dtype::i32},
    tensor_type{"U32", 32, dtype::u32},
    tensor_type{"F32", 32, dtype::f32},
    tensor_type{"C64", 64},
    tensor_type{"F64", 64},
    tensor_type{"I64", 64, dtype::i64},
    tensor_type{"U64", 64},
};

}  // namespace

const tensor_type* find_tensor_type(std::string_view name) noexcept {
  const auto at = std::find_if(k_types.begin(), k_types.end(),
                               [&](const tensor_type& t) { return t.name == name; });
  return at == k_types.end() ? nullptr : &*at;
}

const tensor_type& tensor_type_of(dtype element) noexcept {
  MOETIER_ASSERT(element != dtype::other);
  const auto at = std::find_if(k_types.begin(), k_types.end(),
                               [&](const tensor_type& t) { return t.element == element; });
  MOETIER_ASSERT(at != k_types.end());
  return *at;
}

std::string shape_text(const tensor_type& type, std::span<const std::uint64_t> shape) {
  return fmt::format("{} [{}]", type.name, fmt::join(shape, ", "));
}

}  // namespace moetier
