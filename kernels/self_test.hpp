#pragma once
// The test that every Backend passes before it serves: one expert of random weights in the
// backend's own shape and format, eight rows, partial and exact, against the fp64 oracle. It finds
// a kernel that this machine, compiler or size breaks before a single row is answered by it.
// Backends that narrow their operands are held to the norm of the difference instead of every
// element. Deterministic. Thread: any (the backend's caller).

#include <functional>

#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"

namespace moetier::kernels {

inline constexpr std::uint32_t k_self_test_rows = 8;
// Largest difference that passes, relative to 1 + the row's largest value.
inline constexpr double k_self_test_tolerance = 1e-5;
// Largest norm of the difference that passes, relative to the result's: about twice what rounding
// f32 rows and the intermediate costs.
constexpr double self_test_norm(operand_form operands) noexcept {
  return operands == operand_form::fp8 ? 8e-2 : 8e-3;
}

// Puts a packed page where the candidate reads it, for as long as the test runs.
using page_placer = std::function<expected<const std::byte*>(std::span<const std::byte> page)>;

// reason::backend_unresolved: what differed, where, by how much; or the placer's own. Without a
// placer pages lie where they were packed. Requires: constants that fit the shape's activation.
expected<void> self_test(Backend& candidate, const activation_constants& constants,
                         const page_placer& place = {});

}  // namespace moetier::kernels
