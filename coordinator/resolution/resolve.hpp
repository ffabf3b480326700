#pragma once
// Resolution: which backend and which carrier a tier runs, decided once for all workers from values
// alone. Every candidate is asked for every worker; the first in order that nobody rejects wins,
// and the report says what became of all others. Nothing is opened, built or measured here: a
// winner that cannot be prepared comes back as a prepare_failure. Thread: any (pure).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/resolution/request.hpp"
#include "schemas/base/error.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::coordinator {

// A report that was made, and why the tier cannot start with it, if it cannot:
// reason::backend_unresolved, carrier_unavailable (a carrier was asked for by name) or
// degrade_forbidden (the report then shows what would have run). Offline a report without a winner
// and without a refusal says what is possible.
struct resolved {
  resolution::resolution_report report;
  std::optional<error> refusal;
};

// Weighs all candidates. Errors are those that come before any report: invalid_argument (values out
// of range), config_invalid (an unknown name), agreement_failed (workers differ where they must
// not), partition_invalid.
expected<resolved> weigh(const resolution_request& request);

// The same as one step: the report of a tier that can start.
expected<resolution::resolution_report> resolve(const resolution_request& request);

// After a worker could not prepare `failed`: notes it in `request` and resolves without it.
expected<resolution::resolution_report> resolve_again(resolution_request& request,
                                                      prepare_failure failed);

// First 64 bits of SHA-256 over winner, carrier and problem; what dispatch headers carry. Never 0.
std::uint64_t resolution_id_of(std::string_view winner, std::string_view carrier,
                               std::uint64_t problem_hash);

}  // namespace moetier::coordinator
