#pragma once
// The plan file: a placement and its shares as JSON (`format: 1`), what `--placement` takes and
// `placement show -o json` prints. Unknown key, wrong length, uncovered expert, wrong sum: an error
// with its place. { "format": 1, "fingerprint": "hex", "experts": E, "slots_per_worker": [..],
// "layers": [ { "layer": l, "slots": [expert per global slot], "shares": [units per slot]
// (optional) } ], "plan_hash": "hex" (optional) } Thread: any.

#include <string>
#include <string_view>

#include "eplb/placement.hpp"
#include "eplb/shares.hpp"

namespace moetier::eplb {

// `spans` are the workers as registered; the file's slots_per_worker must equal theirs.
// `fingerprint` 0 accepts any.
expected<placement> placement_from_json(std::string_view text, std::string_view file_name,
                                        std::uint32_t experts, std::span<const layer_id> layers,
                                        std::span<const worker_span> spans,
                                        std::uint64_t fingerprint);
// slots_per_worker alone, to know how many workers a file wants before they have joined.
expected<std::vector<std::uint32_t>> slots_per_worker_of(std::string_view text,
                                                         std::string_view file_name);
std::string placement_to_json(const placement& p, const shares& s, std::uint64_t fingerprint,
                              plan_hash hash);

}  // namespace moetier::eplb
