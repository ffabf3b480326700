#pragma once
// Small tensors of any float type, read as f32. Thread: any.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/shard_set.hpp"

namespace moetier::workers {

// Elements `first`, first + step, ... into `into`; every one finite, else reason::weight_mismatch
// that begins with `place`. BF16, F16, F32 and F8_E8M0 (255 is not finite).
// Requires: they lie in the tensor.
expected<void> read_floats(const tensor_place& from, std::string_view place, std::uint64_t first,
                           std::uint64_t step, std::span<float> into);

// The whole tensor.
expected<std::vector<float>> read_floats(const tensor_place& from, std::string_view place);

// The bytes of a whole tensor as read: reason::weight_mismatch names the first element that is not
// finite.
expected<void> check_finite(const tensor_place& from, std::string_view place,
                            std::span<const std::byte> stored);

}  // namespace moetier::workers
