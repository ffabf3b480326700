#pragma once
// The plan file: a placement and its shares as JSON (`format: 1`), what `plan` writes,
// `--placement` takes and `placement show -o json` prints. Unknown key, wrong length, uncovered
// expert, wrong sum: an error with its place. { "format": 1, "fingerprint": "hex" (optional),
// "experts": E, "slots_per_worker": [..], "layers": [ { "layer": l, "slots": [expert per slot],
// "shares": [units per slot] (optional: even) } ], "moves": [ { "layer", "slot", "expert",
// "replaced" } ] (optional), "plan_hash": "hex" (optional, a committed plan's), "checksum": "hex"
// (optional) }
//
// The checksum is of what the file says; who edits by hand drops it. Thread: any.

#include <optional>
#include <string>
#include <string_view>

#include "eplb/placement.hpp"
#include "eplb/plan_draft.hpp"
#include "eplb/shares.hpp"

namespace moetier::eplb {

// A slot that got another expert than the plan before had there.
struct plan_move {
  layer_id layer;
  std::uint32_t slot = 0;
  std::uint32_t expert = 0;
  std::int32_t replaced = -1;  // -1 = the slot was empty

  bool operator==(const plan_move&) const = default;
};

struct plan_file {
  plan_draft draft;
  std::uint64_t fingerprint = 0;  // 0 = of no model in particular
  std::vector<plan_move> moves;

  bool operator==(const plan_file&) const = default;
};

// A plan by itself, checked as far as it goes without a tier.
expected<plan_file> read_plan_file(std::string_view text, std::string_view file_name);
// `plan` 0: none is committed yet.
std::string plan_file_text(const plan_file& f, plan_hash plan = {});

// The tier that a file must fit. `spans` are the workers as registered; the file's slots_per_worker
// must equal theirs. `fingerprint` 0 accepts any.
struct plan_target {
  std::uint32_t experts = 0;
  std::span<const layer_id> layers;
  std::span<const worker_span> spans;
  std::uint64_t fingerprint = 0;
};
struct placed_plan {
  placement placed;
  std::vector<std::vector<std::uint32_t>> units;  // by layer and slot; a layer without: empty
};
expected<placed_plan> read_placed_plan(std::string_view text, std::string_view file_name,
                                       const plan_target& target);
// slots_per_worker alone, to know how many workers of a tier a file wants before they have joined.
expected<std::vector<std::uint32_t>> slots_per_worker_of(std::string_view text,
                                                         std::string_view file_name);
std::string placement_to_json(const placement& p, const shares& s, std::uint64_t fingerprint,
                              plan_hash hash);

}  // namespace moetier::eplb
