#pragma once
// The header of a safetensors file, read from bytes that nobody trusts. Everything is checked
// before anything is used: grammar, doubled names, known element types, sizes without overflow, and
// data that is covered by the tensors exactly once. No document is kept, so memory stays within a
// few times the header's size. It never touches the file.
// Thread: any (an immutable value).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/safetensors/tensor_info.hpp"

namespace moetier {

struct tensor_header {
  std::vector<tensor_info> tensors;                           // ascending by name
  std::vector<std::pair<std::string, std::string>> metadata;  // ascending by key

  // nullptr when there is no such tensor.
  const tensor_info* find(std::string_view name) const noexcept;
};

// The header from its JSON text; `data_bytes` is what follows it in the file, `file` names the
// file in sentences. reason::file_malformed names the first breach.
expected<tensor_header> parse_tensor_header(std::string_view text, std::uint64_t data_bytes,
                                            std::string_view file);

}  // namespace moetier
