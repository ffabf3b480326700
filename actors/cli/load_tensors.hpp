#pragma once
// What the readers of loads ask a safetensors file: which of its tensors are meant, and what its
// metadata says. Thread: any (pure reads).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cli/plan_options.hpp"
#include "schemas/base/error.hpp"
#include "schemas/safetensors/tensor_file.hpp"

namespace moetier::cli {

// Empty where there is no such key.
std::string metadata(const tensor_header& h, std::string_view key);
// 0 where there is none, or no number.
std::uint32_t metadata_number(const tensor_header& h, std::string_view key);
// The tensors that were asked for; reason::file_malformed names what there is instead.
expected<std::vector<const tensor_info*>> chosen_tensors(const tensor_file& file,
                                                         const load_source& source);

}  // namespace moetier::cli
