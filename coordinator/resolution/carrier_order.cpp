#include "coordinator/resolution/carrier_order.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/resolution/answers.hpp"
#include "coordinator/resolution/literal.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::coordinator {
namespace {

using resolution::reject_reason;
using transport::carrier_candidate;

bool exchanges_nothing(const resolution_request& request,
                       const kernels::backend_candidate& backend) {
  const auto& d = request.where;
  return backend.scheduler == kernels::scheduler_kind::fused_comm || d.dwdp ||
         (d.colocated && d.workers == 1 && d.sources == 1);
}

answers asked(const resolution_request& request, const carrier_candidate& c,
              const transport::carrier_wants& wants, const carrier_candidate* forced) {
  answers all{std::string(c.name)};
  all.add_history(request);
  if (!all.rejected().empty()) return all;
  for (const auto& worker : request.workers) {
    all.add(worker.worker,
            transport::can_implement(c, request.what, request.where, worker.seen, wants),
            request.offline);
  }
  if (!all.rejected().empty()) return all;
  if (forced != nullptr && forced != &c)
    all.add_everywhere(request, reject_reason::path_not_enabled,
                       fmt::format("{} was asked for", forced->name));
  if (forced == nullptr && c.by_request)
    all.add_everywhere(request, reject_reason::path_not_enabled, "it runs when asked for only");
  return all;
}

}  // namespace

const carrier_candidate* asked_carrier(const resolution_request& request) {
  const std::string literal = upper_case(request.where.communication);
  for (const carrier_candidate& c : request.carriers) {
    const bool short_name = !c.short_name.empty() && upper_case(c.short_name) == literal;
    if (short_name || upper_case(c.name) == literal) return &c;
  }
  return nullptr;
}

expected<void> check_carrier_name(const resolution_request& request) {
  const bool any = upper_case(request.where.communication) == k_auto;
  if (any || asked_carrier(request) != nullptr) return {};
  std::string allowed = "auto";
  for (const carrier_candidate& c : request.carriers) allowed += fmt::format(", {}", c.name);
  return fail(reason::config_invalid, "transport.carrier", printable(request.where.communication),
              allowed);
}

resolution::carrier_choice choose_carrier(const resolution_request& request,
                                          const kernels::backend_candidate& backend) {
  resolution::carrier_choice choice;
  if (exchanges_nothing(request, backend)) {
    choice.winner = k_no_carrier;
    return choice;
  }
  const carrier_candidate* const forced = asked_carrier(request);
  for (const carrier_candidate& c : request.carriers) {
    const answers all = asked(
        request, c,
        {.backend = backend.short_name, .all_gather_only = backend.bits.all_gather_only}, forced);
    all.tell(choice.rejected, choice.possible);
    if (!all.eligible()) continue;
    if (choice.winner.empty()) {
      choice.winner = c.name;
    } else if (choice.fallback.empty()) {
      choice.fallback = c.name;
    }
  }
  return choice;
}

}  // namespace moetier::coordinator
