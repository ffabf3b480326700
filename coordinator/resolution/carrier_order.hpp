#pragma once
// Which carrier a backend is paired with: none where nothing is exchanged, the one that was asked
// for, or the first in order that every worker can run; the next one that can is its fallback.
// Thread: any (pure).

#include "coordinator/resolution/request.hpp"
#include "schemas/base/error.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::coordinator {

inline constexpr std::string_view k_no_carrier = "none";

// reason::config_invalid when the deployment asks for a carrier that does not exist.
expected<void> check_carrier_name(const resolution_request& request);

// The carrier that was asked for by its name or short name, whatever the case; nullptr = AUTO.
const transport::carrier_candidate* asked_carrier(const resolution_request& request);

// winner "" = none can run. Requires: check_carrier_name() passed.
resolution::carrier_choice choose_carrier(const resolution_request& request,
                                          const kernels::backend_candidate& backend);

}  // namespace moetier::coordinator
