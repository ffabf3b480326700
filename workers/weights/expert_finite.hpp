#pragma once
// Whether an unquantised expert's matrices hold finite numbers only. One NaN makes every row that
// its expert computes NaN, so files with one are refused by name unless the settings say otherwise.
// Thread: any (pure).

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "workers/store/expert_source.hpp"

namespace moetier::workers {

// reason::weight_mismatch names layer, expert, projection, the first such element and how many
// there are. Requires: `stored` is bf16, f16 or f32, and the buffers are whole.
expected<void> check_expert_finite(dtype stored, layer_id layer, expert_id expert,
                                   const expert_buffers& matrices);

}  // namespace moetier::workers
