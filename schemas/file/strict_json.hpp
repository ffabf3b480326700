#pragma once
// JSON that nobody trusts, parsed into a document: no doubled key, nesting and number of values
// bounded, no NUL byte, UTF-8 only. The library alone would let the last of two equal keys win in
// silence and stop at a NUL. Small files only (configurations, indices, plans); a reader of large
// ones keeps no document. Callers include <nlohmann/json.hpp> themselves, in their .cpp.
// Thread: any.

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "schemas/base/error.hpp"

namespace moetier {

struct json_limits {
  std::size_t depth_max = 8;         // open objects and arrays
  std::size_t values_max = 1 << 17;  // of any kind; about 40 to 200 bytes of memory each
  bool non_finite = false;           // NaN, Infinity and -Infinity are numbers, as Python writes
};

// reason::file_malformed, naming `file` and what is wrong where.
expected<nlohmann::json> parse_json(std::string_view text, std::string_view file,
                                    const json_limits& limits = {});

}  // namespace moetier
