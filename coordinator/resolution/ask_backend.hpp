#pragma once
// Asks one backend candidate for all workers, by the rules in their order: adapters, what the
// candidate itself says, the activation and its constants, exact answers, and whether any carrier
// pairs with it. The first reason stands. Thread: any (pure).

#include "coordinator/resolution/answers.hpp"
#include "coordinator/resolution/request.hpp"
#include "schemas/resolution/report.hpp"

namespace moetier::coordinator {

// `carrier` = choose_carrier() for this candidate.
answers ask_backend(const resolution_request& request, const kernels::backend_candidate& candidate,
                    const resolution::carrier_choice& carrier);

}  // namespace moetier::coordinator
