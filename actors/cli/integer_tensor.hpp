#pragma once
// A whole tensor of any integer type as 64-bit numbers. Thread: any (a pure read).

#include <cstdint>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/tensor_file.hpp"

namespace moetier::cli {

bool is_integer(const tensor_info& t) noexcept;
// reason::file_malformed for another type or a number beyond 63 bits; limit_exceeded beyond 1 GiB.
expected<std::vector<std::int64_t>> read_integers(const tensor_file& file, const tensor_info& t);

}  // namespace moetier::cli
