#include "coordinator/resolution/ask_backend.hpp"

#include <fmt/core.h>

namespace moetier::coordinator {
namespace {

using kernels::backend_candidate;
using kernels::constant_support;
using kernels::holds;
using resolution::answer_mode;
using resolution::reject_reason;
using resolution::verdict;

// Rejected before the candidate is asked.
verdict of_adapters(const resolution_request& r, const backend_candidate& c) {
  if (!r.where.lora_routed) return verdict::yes();
  if (!c.bits.supports_lora)
    return verdict::no(reject_reason::lora_unsupported, "it takes no adapters");
  if (!holds(c.lora_quants, r.what.quant))
    return verdict::no(
        reject_reason::lora_unsupported,
        fmt::format("it takes no adapters over {} weights", quant_name(r.what.quant)));
  return verdict::yes();
}

// Asked after the candidate, the same on every worker.
verdict of_activation(const resolution_request& r, const backend_candidate& c) {
  const auto& p = r.what;
  if (!holds(c.activations, p.activation))
    return verdict::no(reject_reason::activation_unsupported,
                       fmt::format("it does not execute {}", activation_name(p.activation)));
  std::string lacking;
  const auto lack = [&](bool given, constant_support form, const char* name) {
    if (given && form == constant_support::unsupported)
      lacking += fmt::format("{}{}", lacking.empty() ? "" : ", ", name);
  };
  lack(p.constant_alpha, c.constants.alpha, "alpha");
  lack(p.constant_beta, c.constants.beta, "beta");
  lack(p.constant_clamp, c.constants.limit, "clamp");
  if (!lacking.empty())
    return verdict::no(reject_reason::activation_unsupported,
                       fmt::format("it ignores {} of {}", lacking, activation_name(p.activation)));
  return verdict::yes();
}

verdict of_exact(const resolution_request& r, const backend_candidate& c) {
  if (r.what.return_mode != answer_mode::exact || c.bits.row_invariant) return verdict::yes();
  return verdict::no(reject_reason::exact_unsupported,
                     "exact answers need rows whose bits depend on no other row");
}

// Which reason stands when no carrier can serve: that of uneven slots has a remedy of its own.
verdict of_carriers(const resolution::carrier_choice& choice) {
  if (!choice.winner.empty() || !choice.possible.empty()) return verdict::yes();
  reject_reason why = reject_reason::capability_missing;
  std::string text;
  for (const resolution::rejection& r : choice.rejected) {
    if (r.why == reject_reason::slots_not_divisible) why = r.why;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", r.candidate, reject_name(r.why));
  }
  return verdict::no(why, fmt::format("no carrier pairs with it: {}", text));
}

}  // namespace

answers ask_backend(const resolution_request& request, const backend_candidate& candidate,
                    const resolution::carrier_choice& carrier) {
  answers all(identity_of(candidate, request.what.quant));
  all.add_history(request);
  if (!all.rejected().empty()) return all;
  for (const auto& worker : request.workers) {
    verdict v = of_adapters(request, candidate);
    if (v.eligible()) v = can_implement(candidate, request.what, request.where, worker.seen);
    for (const verdict& later :
         {of_activation(request, candidate), of_exact(request, candidate), of_carriers(carrier)}) {
      if (!v.rejected() && later.rejected()) v = later;
    }
    all.add(worker.worker, v, request.offline);
  }
  // A backend is no surer than its carrier.
  if (all.eligible() && carrier.winner.empty()) {
    for (const resolution::possibility& p : carrier.possible) {
      for (const std::string& worker : p.workers)
        all.add(worker, verdict::unless_unknown(p.unknown), request.offline);
    }
  }
  return all;
}

}  // namespace moetier::coordinator
