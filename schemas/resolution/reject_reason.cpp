#include "schemas/resolution/reject_reason.hpp"

#include <array>

namespace moetier::resolution {
namespace {

constexpr std::array<std::string_view, k_reject_reasons> k_names{
    "quant_unsupported",    "dtype_unsupported",   "sm_unsupported",
    "dep_missing",          "shape_unaligned",     "slots_not_divisible",
    "topology_unsupported", "lora_unsupported",    "activation_unsupported",
    "routing_unsupported",  "eplb_unsupported",    "finalise_fusion_required",
    "path_not_enabled",     "backend_deprecated",  "not_an_impl",
    "not_proven",           "slot_count",          "weight_layout",
    "capability_missing",   "exact_unsupported",   "scheduler_unsupported",
    "workload_infeasible",  "memory_insufficient", "prepare_failed",
    "quarantined"};

}  // namespace

std::string_view reject_name(reject_reason why) noexcept {
  const auto at = static_cast<std::size_t>(why);
  return at < k_names.size() ? k_names[at] : std::string_view();
}

bool reject_of(std::string_view name, reject_reason& why) noexcept {
  for (std::size_t i = 0; i < k_names.size(); ++i) {
    if (k_names[i] != name) continue;
    why = static_cast<reject_reason>(i);
    return true;
  }
  return false;
}

}  // namespace moetier::resolution
