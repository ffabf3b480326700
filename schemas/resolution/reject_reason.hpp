#pragma once
// Why a candidate cannot run: the closed list, the same for backends and carriers. The detail
// beside a reason says what was asked and what would do; tests and metrics assert on the reason.
// Thread: any (values).

#include <cstdint>
#include <string_view>

namespace moetier::resolution {

enum class reject_reason : std::uint8_t {
  quant_unsupported = 0,
  dtype_unsupported,
  sm_unsupported,  // the device's architecture or the processor's instruction set
  dep_missing,     // this build or machine lacks it
  shape_unaligned,
  slots_not_divisible,
  topology_unsupported,
  lora_unsupported,
  activation_unsupported,
  routing_unsupported,
  eplb_unsupported,
  finalise_fusion_required,
  path_not_enabled,  // a choice of ours, not a lack
  backend_deprecated,
  not_an_impl,  // declared, but no Backend: self-tests use it
  not_proven,   // it abstained where that is not enough
  slot_count,
  weight_layout,
  capability_missing,
  exact_unsupported,
  scheduler_unsupported,
  workload_infeasible,
  memory_insufficient,
  prepare_failed,
  quarantined,
};
inline constexpr std::uint8_t k_reject_reasons = 25;

std::string_view reject_name(reject_reason why) noexcept;  // "shape_unaligned"; "" out of range
// nothing if no reason has this name.
bool reject_of(std::string_view name, reject_reason& why) noexcept;

}  // namespace moetier::resolution
