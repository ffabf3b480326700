#pragma once
// The test that every Backend passes before it serves: one expert of random weights in the
// backend's own shape and format, eight rows, partial and exact, against the fp64 oracle. It finds
// a kernel that this machine, compiler or size breaks before a single row is answered by it.
// Deterministic. Thread: any (the backend's caller).

#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"

namespace moetier::kernels {

inline constexpr std::uint32_t k_self_test_rows = 8;
// Largest difference that passes, relative to 1 + the row's largest value.
inline constexpr double k_self_test_tolerance = 1e-5;

// reason::backend_unresolved: what differed, where, by how much. Requires: constants that fit the
// shape's activation.
expected<void> self_test(Backend& candidate, const activation_constants& constants);

}  // namespace moetier::kernels
