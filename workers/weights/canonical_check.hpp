#pragma once
// Whether the canonical bytes of a quantised matrix can be computed with: no NaN code, every scale
// finite, no scale 0 over codes that are not. Files that fail this were damaged or written by a
// tool gone wrong. Thread: any (pure).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "schemas/model/weight_format.hpp"

namespace moetier::workers {

// What is wrong, or "". Requires: bytes.size() == matrix_form_of(format, out, in).bytes.
std::string find_fault(const weight_format& format, std::span<const std::byte> bytes,
                       std::uint32_t out, std::uint32_t in);

}  // namespace moetier::workers
